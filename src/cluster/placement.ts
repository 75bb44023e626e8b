/** A node and how many more browsers it could run. */
export interface Room {
  id: string;
  free: number;
}

/** The node with the most room; this one when no other has more. */
export function mostRoom(self: Room, others: readonly Room[]): Room {
  return others.reduce((best, other) => (other.free > best.free ? other : best), self);
}

/**
 * Where a session that was asked for here is made: here, since that saves a hop and takes one of our warm browsers, unless
 * there is no room here, or another node has at least twice as much. So a node that gets all the requests shares them
 * from half full on, and two that are as full as each other pass nothing back and forth.
 */
export function nearestRoom(self: Room, others: readonly Room[]): Room {
  const best = mostRoom(self, others);
  return self.free > 0 && best.free < 2 * self.free ? self : best;
}

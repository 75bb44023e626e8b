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
 * Where a session that was requested here is made. Here, since that saves a hop and takes a warm browser of this node,
 * unless there is no room here, or another node has at least twice as much. So a node that gets all requests shares them
 * from half full on, and two equally full nodes do not pass sessions back and forth.
 */
export function nearestRoom(self: Room, others: readonly Room[]): Room {
  const best = mostRoom(self, others);
  return self.free > 0 && best.free < 2 * self.free ? self : best;
}

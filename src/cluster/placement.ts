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
 * The node that creates a session. It is this node, which saves a hop and uses a warm browser, unless this node is full
 * or another node has at least twice as much room. So a node that receives all requests shares them
 * from half full on, and two equally full nodes do not pass sessions back and forth.
 */
export function nearestRoom(self: Room, others: readonly Room[]): Room {
  const best = mostRoom(self, others);
  return self.free > 0 && best.free < 2 * self.free ? self : best;
}

/** Storage that a project claims for something, until it is stored and counted by itself, or released. */
export interface StorageClaim {
  /** Called before bytes are written, with the total so far. Throws when the project may not store so much. */
  cover(bytes: number): Promise<void>;
  /** Called once it is stored, or not needed. A second call does nothing. */
  release(): Promise<void>;
}

export interface ProjectStorage {
  claim(projectId: string): StorageClaim;
}

/** Room for something that a project is about to store, until it is stored and counts by itself, or is not. */
export interface StorageClaim {
  /** To be asked before the bytes are written, with all there are so far. Throws when the project may not store so many. */
  cover(bytes: number): Promise<void>;
  /** Once it is stored, or given up. Giving back twice is giving back once. */
  release(): Promise<void>;
}

export interface ProjectStorage {
  claim(projectId: string): StorageClaim;
}

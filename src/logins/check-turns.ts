/** A connection that a node has claimed for a check. */
interface Due {
  id: string;
  project_id: string;
}

/**
 * Takes turns between the projects with due checks on a node. Without turns, a project with thousands of connections delays the checks of
 * all others by hours. A project has `most` checks under way at most: a site that does not answer keeps one for minutes, and a login that waits
 * for a code for twenty.
 */
export function checkTurns(most: number) {
  /** Projects that had their turn in this round. */
  const served = new Set<string>();
  const underWay = new Map<string, number>();

  function count(projectId: string, by: 1 | -1): void {
    const now = (underWay.get(projectId) ?? 0) + by;
    if (now === 0) underWay.delete(projectId);
    else underWay.set(projectId, now);
  }

  return {
    /** The next connection to check. `claim` finds a connection outside of these projects. */
    async next<T extends Due>(claim: (except: readonly string[]) => Promise<T | undefined>): Promise<T | undefined> {
      const full = () => [...underWay].flatMap(([projectId, checks]) => (checks >= most ? [projectId] : []));
      let due = await claim([...served, ...full()]);
      if (!due && served.size > 0) {
        served.clear();
        due = await claim(full());
      }
      if (!due) return undefined;
      served.add(due.project_id);
      count(due.project_id, 1);
      return due;
    },

    /** The check of a connection of this project is over. */
    over: (projectId: string) => count(projectId, -1),
  };
}

/**
 * Calls `write` with each value, one call after the other. While a call is under way only the newest value is kept, since each value
 * replaces the one before.
 */
export function latest<T>(write: (value: T) => Promise<void>, onError: (error: Error) => void): (value: T) => void {
  let waiting: { value: T } | undefined;
  let writing = false;

  async function writeAll(): Promise<void> {
    writing = true;
    for (let next = waiting; next; next = waiting) {
      waiting = undefined;
      await write(next.value).catch(onError);
    }
    writing = false;
  }

  return (value) => {
    waiting = { value };
    if (!writing) void writeAll();
  };
}

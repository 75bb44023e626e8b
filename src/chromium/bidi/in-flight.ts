/** The commands of one client that the mapper has not answered, and their bytes. */
export class InFlight {
  count = 0;
  bytes = 0;
  /** The bytes of the commands with an id: a client may use an id again before its answer. */
  readonly #byId = new Map<number, number[]>();

  add(id: number, bytes: number): void {
    this.count += 1;
    this.bytes += bytes;
    const those = this.#byId.get(id);
    if (those) those.push(bytes);
    else this.#byId.set(id, [bytes]);
  }

  /** Of several commands with the id, the smallest counts as the answered one. */
  answered(id: number): void {
    const those = this.#byId.get(id);
    if (!those) return;
    const smallest = Math.min(...those);
    those.splice(those.indexOf(smallest), 1);
    if (those.length === 0) this.#byId.delete(id);
    this.count -= 1;
    this.bytes -= smallest;
  }
}

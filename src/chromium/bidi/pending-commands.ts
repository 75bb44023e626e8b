import { turns } from '../../lib/turns.ts';
import { readMessage, LARGE, MOST_PARSED } from '../cdp/large-messages.ts';
import { byteLength } from '../cdp/message.ts';
import { MapperCdpError, MapperCloseError } from './fault.ts';
import { LargeText } from './large-text.ts';
import { noted } from './log-entries.ts';

/** Of the answers about arguments of log entries, while one of them is missing. */
const MOST_LOG_BYTES = 16 * 1024 * 1024;
/** All that the client gets later than a log entry waits for the page to answer about the entry's arguments. */
const LOG_MS = 5000;
export const OTHER_ERROR = -32_000;

interface PendingCommand {
  /** The CDP session that it was sent to. */
  client: object;
  method: string;
  resolve: (result: never) => void;
  reject: (error: Error) => void;
  mayFail: boolean;
  /** The mapper asks about an argument of a log entry. */
  isLog: boolean;
}

interface Waiting extends PendingCommand {
  late: NodeJS.Timeout | undefined;
}

/** An answer of the browser, as far as the caller has checked it. */
export interface CdpAnswer {
  result?: Record<string, unknown> | undefined;
  error?: { code: number; message: string } | undefined;
}

/** The mapper's commands that the browser has not answered. */
export class PendingCommands {
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  /** Commands about log entries, and the bytes of their answers since none was pending. */
  readonly #logs = { waiting: 0, bytes: 0 };

  /** Answers with the id of the command. */
  add(command: PendingCommand): number {
    this.#lastId += 1;
    const id = this.#lastId;
    const giveUp = () => this.#settle(id, { result: noted('[The page did not answer]') });
    const late = command.isLog ? setTimeout(giveUp, LOG_MS) : undefined;
    if (late) this.#logs.waiting += 1;
    this.#waiting.set(id, { ...command, late });
    return id;
  }

  /** Takes an answer. `use` gets it first. */
  answer(
    id: number,
    pieces: readonly Buffer[],
    is: (message: unknown) => message is CdpAnswer,
    use: (answer: CdpAnswer) => void,
  ): void {
    const command = this.#waiting.get(id);
    if (!command) return;
    const bytes = byteLength(pieces);
    if (command.isLog) {
      this.#logs.bytes += bytes;
      if (bytes > LARGE || this.#logs.bytes > MOST_LOG_BYTES)
        return this.#settle(id, { result: noted(`[A value of ${bytes} bytes]`) });
    }
    const { message, data } = readMessage(pieces, command.method, MOST_PARSED) ?? {};
    if (!is(message)) {
      const message = `The answer of ${bytes} bytes to ${command.method} cannot be translated to BiDi.`;
      return this.#settle(id, { error: { code: OTHER_ERROR, message } });
    }
    if (data && message.result) message.result['data'] = new LargeText(data);
    use(message);
    this.#settle(id, message);
  }

  /** The session is closed. Its commands fail in pieces: ten thousand at once took half a second. */
  async forget(detached: object): Promise<void> {
    const those = [...this.#waiting].filter(([, { client }]) => client === detached);
    for (const [id] of those) this.#remove(id);
    const turn = turns();
    for (const [, { resolve, reject, mayFail }] of those) {
      if (mayFail) resolve({} as never);
      else reject(new MapperCloseError('Session closed.'));
      await turn(); // also without a wait: the client's answer is written before the next command fails
    }
  }

  clear(): void {
    for (const id of this.#waiting.keys()) this.#remove(id);
  }

  #settle(id: number, { result = {}, error }: CdpAnswer): void {
    const command = this.#waiting.get(id);
    if (!command) return;
    this.#remove(id);
    if (error && !command.mayFail) command.reject(new MapperCdpError(error.message, error.code));
    else command.resolve(result as never);
  }

  #remove(id: number): void {
    const late = this.#waiting.get(id)?.late;
    this.#waiting.delete(id);
    if (!late) return;
    clearTimeout(late);
    this.#logs.waiting -= 1;
    if (this.#logs.waiting === 0) this.#logs.bytes = 0;
  }
}

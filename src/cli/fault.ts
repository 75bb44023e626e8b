/** The exit codes of the command line; docs/cli.md lists them. */
export const exit = { refused: 1, usage: 2, access: 3, notFound: 4, unreachable: 5 } as const;

/** An error that the user can act on: its message is printed without a stack. */
export class Fault extends Error {
  override readonly name = 'Fault';
  readonly exitCode: number;
  /** Lines below the message, such as the code and the request id. */
  readonly details: string[];

  constructor(message: string, exitCode: number = exit.refused, details: string[] = []) {
    super(message);
    this.exitCode = exitCode;
    this.details = details;
  }
}

/** Compares the name, because the operator's part of the command line has a copy of the class (scripts/join.mjs). */
export const isFault = (error: Error): error is Fault => error.name === 'Fault';

export class UsageError extends Fault {
  constructor(message: string) {
    super(message, exit.usage);
  }
}

/** An error of the service, with its message. */
export class Refused extends Fault {
  readonly status: number;
  readonly code: string | undefined;

  constructor(status: number, body: { code?: string; message?: string }, requestId: string | undefined) {
    const code = status === 401 || status === 403 ? exit.access : status === 404 ? exit.notFound : exit.refused;
    const details = [
      `code: ${body.code ?? `http ${status}`}`,
      ...(requestId === undefined ? [] : [`request: ${requestId}`]),
    ];
    super(body.message ?? `The service answered with status ${status}.`, code, details);
    this.status = status;
    this.code = body.code;
  }
}

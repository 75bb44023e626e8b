/** Why a request failed: a code the service knows (an errno's name, or one of Corral's), and a sentence. */
export class Fault extends Error {
  readonly code: string;
  readonly details: unknown;

  constructor(code: string, message: string, details?: unknown) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/** Why a request failed: a code the service knows (an errno's name, or one of Corral's), and a sentence. */
export class Fault extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

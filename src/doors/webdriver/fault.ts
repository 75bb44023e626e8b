import { ServiceError } from '../../errors.ts';

/** The WebDriver errors that this service returns itself, with their status; chromedriver returns the others. */
const statuses = {
  'invalid argument': 400,
  'invalid session id': 404,
  'unknown command': 404,
  'session not created': 500,
  'unknown error': 500,
  timeout: 500,
} as const;

type WebDriverError = keyof typeof statuses;

/** A refusal in WebDriver's words. */
export class WebDriverFault extends Error {
  override readonly name = 'WebDriverFault';
  readonly error: WebDriverError;

  constructor(error: WebDriverError, message: string, options?: ErrorOptions) {
    super(message, options);
    this.error = error;
  }
}

interface Refusal {
  status: number;
  headers: Record<string, string>;
  body: { value: { error: WebDriverError; message: string; stacktrace: string; data?: { code: string } } };
}

const invalidArgument = new Set(['invalid_input', 'bad_request', 'payload_too_large', 'feature_not_available']);

/** An error in the format of WebDriver; undefined for a fault of the service. */
export function refusalOf(error: unknown, { creating }: { creating: boolean }): Refusal | undefined {
  const answer = (status: number, word: WebDriverError, message: string, more = {}, headers = {}): Refusal => ({
    status,
    headers,
    body: { value: { error: word, message, stacktrace: '', ...more } },
  });
  if (error instanceof WebDriverFault) return answer(statuses[error.error], error.error, error.message);
  if (!(error instanceof ServiceError)) return undefined;
  const { code, status, message, extras } = error;
  const word = wordFor(code, creating);
  return answer(status, word, message, { data: { code } }, extras.headers);
}

function wordFor(code: string, creating: boolean): WebDriverError {
  if (invalidArgument.has(code)) return 'invalid argument';
  if (creating) return 'session not created';
  if (code === 'session_not_found') return 'invalid session id';
  if (code === 'not_found') return 'unknown command';
  return code === 'browser_silent' ? 'timeout' : 'unknown error';
}

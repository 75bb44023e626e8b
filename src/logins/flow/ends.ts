import type { FlowErrorCode, FlowOutcome } from './types.ts';

/** The end of a flow that did not succeed. The message is a sentence for the user, without typed values. */
export class FlowEnd extends Error {
  override readonly name = 'FlowEnd';
  readonly code: FlowErrorCode;
  readonly status: Exclude<FlowOutcome['status'], 'SUCCESS'>;
  readonly websiteError: string | undefined;

  constructor(code: FlowErrorCode, message: string, websiteError?: string, status: FlowEnd['status'] = 'FAILED') {
    super(message);
    this.code = code;
    this.status = status;
    this.websiteError = websiteError || undefined;
  }
}

export const expired = (code: FlowErrorCode, message: string) => new FlowEnd(code, message, undefined, 'EXPIRED');

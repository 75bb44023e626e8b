import type { FlowErrorCode, FlowOutcome } from './types.ts';

/** The end of a flow that did not succeed. The message is a sentence for the user, and holds nothing that was typed. */
export class FlowEnd extends Error {
  override readonly name = 'FlowEnd';
  readonly code: FlowErrorCode;
  readonly status: Exclude<FlowOutcome['status'], 'SUCCESS'>;
  readonly websiteError: string | undefined;

  constructor(
    code: FlowErrorCode,
    message: string,
    {
      status = 'FAILED',
      websiteError,
    }: { status?: Exclude<FlowOutcome['status'], 'SUCCESS'>; websiteError?: string | undefined } = {},
  ) {
    super(message);
    this.code = code;
    this.status = status;
    this.websiteError = websiteError || undefined;
  }
}

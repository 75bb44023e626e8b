import type { IncomingMessage } from 'node:http';
import { CountedResponse } from './counted-response.ts';

/** No browser may take an answer for a page or a script because of what it looks like. */
export const nosniff = { 'X-Content-Type-Options': 'nosniff' } as const;

/** The answers of a server, those that Node gives by itself included. */
export class UnsniffedResponse<R extends IncomingMessage = IncomingMessage> extends CountedResponse<R> {
  constructor(...given: ConstructorParameters<typeof CountedResponse<R>>) {
    super(...given);
    this.setHeaders(new Map(Object.entries(nosniff)));
  }
}

import type { Question, Said } from '../protocol.ts';
import type { Stream } from '../stream.ts';

/** A stream on which a request is answered, typed by that request. */
export interface Telling<Q extends Question> extends Stream {
  json(value: Said<Q>): Promise<void>;
}

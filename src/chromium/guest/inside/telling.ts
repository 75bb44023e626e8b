import type { Question, Said } from '../protocol.ts';
import type { Stream } from '../stream.ts';

/** A stream on which a question is answered, with what there is to say to it. */
export interface Telling<Q extends Question> extends Stream {
  json(value: Said<Q>): Promise<void>;
}

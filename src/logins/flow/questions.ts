import { createHmac } from 'node:crypto';
import type { ReadChoice, ReadField } from '../reading/types.ts';
import type { Flow, Look } from './flow.ts';
import { hostOf } from './hosts.ts';

/**
 * Identifies a question by the document that asks it, the kind of field and its label. An answer is used for the question that it was given
 * to: a page may ask another one under the same id before the answer is typed. Digits of the label do not count, since some pages count
 * seconds in it. The key of the hash belongs to the flow, because a label may repeat a secret.
 */
export function questionOf({ hashSalt }: Pick<Flow, 'hashSalt'>, asked: ReadField | ReadChoice): string {
  const { id, origin, type, label } = asked;
  const kind = 'key' in asked ? asked.key : [asked.mfaType, asked.provider];
  const text = JSON.stringify([origin, id, type, kind, label.replace(/\d/g, '')]);
  return createHmac('sha256', hashSalt).update(text).digest('base64url').slice(0, 22);
}

type AskedField = Pick<ReadField, 'id' | 'key' | 'origin'>;

/**
 * The id of a field. Clients may answer without the id of the question, so an id that was asked under by one origin is not used for another:
 * an answer that arrives after the page went elsewhere names no field there, and is refused.
 */
export function idAt({ askedAt }: Pick<Flow, 'askedAt'>, { id, key, origin = '' }: AskedField): string {
  // An answer may name the key of a field instead (submit.ts).
  const isOfOthers = [id, key].some((name) => (askedAt.get(name) ?? origin) !== origin);
  if (!isOfOthers) return id;
  return `${id}@${URL.canParse(origin) ? new URL(origin).host : ''}`;
}

/** The person is asked for these fields. */
export function noteAsked({ askedAt }: Pick<Flow, 'askedAt'>, fields: readonly ReadField[]): void {
  for (const { id, key, origin = '' } of fields)
    for (const name of [id, key]) if (!askedAt.has(name)) askedAt.set(name, origin);
}

/** The choice that a person made, if the page still offers it. */
export const pendingChoice = (flow: Flow, choices: readonly ReadChoice[]): ReadChoice | undefined =>
  choices.find((choice) => flow.pending.choice === questionOf(flow, choice));

/** Removes answers to questions that the page does not ask any more. The person is asked again. */
export function dropStaleAnswers(flow: Flow, { reading }: Look): void {
  const { values } = flow.pending;
  if (reading.fields.length === 0 || values.size === 0) return;
  const asked = new Set(reading.fields.map((field) => questionOf(flow, field)));
  for (const question of values.keys())
    if (!asked.has(question)) {
      values.delete(question);
      flow.reported = undefined;
    }
}

/** The site of a document: empty for the connection's own hosts, otherwise the host of an identity provider. */
export function placeOf({ hosts }: Flow, origin: string | undefined): string | undefined {
  if (origin === undefined) return undefined;
  return hosts.own(origin) ? '' : hostOf(origin);
}

/** What a person typed in this flow at the site of a document, by the key of the field. */
export function personalAt(flow: Flow, origin: string | undefined): ReadonlyMap<string, string> {
  return flow.personal.get(placeOf(flow, origin) ?? unknownPlace) ?? new Map();
}

/** Keeps what a person typed for the same question on a later page of the same site. */
export function keepPersonal(flow: Flow, origin: string | undefined, key: string, value: string): void {
  const place = placeOf(flow, origin);
  if (place === undefined) return;
  const there = flow.personal.get(place) ?? new Map<string, string>();
  flow.personal.set(place, there.set(key, value));
}

/** No host has this name, so nothing is kept under it. */
const unknownPlace = '?';

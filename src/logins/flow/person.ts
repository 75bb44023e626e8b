import { createHmac, randomBytes } from 'node:crypto';
import { urlOf } from '../../lib/urls.ts';
import type { ReadChoice, ReadField, Reading } from '../reading/types.ts';
import { isCode } from './codes.ts';
import { hideSecret, hideTyped, type HiddenValues } from './hidden-values.ts';
import { hostOf, theSite, type AllowedHosts } from './hosts.ts';
import type { FlowOutcome, FlowState, Submitted } from './types.ts';

interface Questions {
  fields: ReadField[];
  choices: ReadChoice[];
  message?: string | undefined;
}

/** The person at the hosted page, or the client that answers for one: questions, answers, typed values and confirmed hosts. */
export class Person {
  /** The current questions. */
  asked: Questions = { fields: [], choices: [] };
  /** An answer arrived after the last look. */
  untried = false;
  /** The person chose an identity provider. The person must then confirm a host that is not known. */
  ssoChosen = false;
  ssoProvider?: string | undefined;
  readonly #hosts: AllowedHosts;
  readonly #hidden: HiddenValues;
  readonly #salt = randomBytes(16);
  /** Answers that were not typed yet, by their questions. */
  readonly #answers = new Map<string, string>();
  /** The question of the choice that the person made. */
  #choice?: string | undefined;
  /** A code that was pushed, and the site of the field that asked for it. */
  #code?: { value: string; place: string | undefined; fromSource: boolean } | undefined;
  /** Typed values, by the names that they get in a credential. */
  #typed: Record<string, string> = {};
  /** The origins of the documents where they were typed, by the same names. */
  readonly #origins = new Map<string, string>();
  /** Typed values by the site of the document and the key of the field, to answer the same question again. */
  readonly #typedAt = new Map<string, Map<string, string>>();
  /** Hosts of identity providers that the person has confirmed or typed at, with the names of the values that were typed there. */
  readonly #confirmed = new Map<string, Set<string>>();
  /** The names of the values that were typed at the connection's own hosts. */
  readonly #atSite = new Set<string>();
  /** The first origin that asked for a field, by the id and the key of the field. */
  readonly #askedAt = new Map<string, string>();
  #reported = '';

  constructor(hosts: AllowedHosts, hidden: HiddenValues) {
    this.#hosts = hosts;
    this.#hidden = hidden;
  }

  /**
   * Identifies a question by the document that asks it, the kind of field and its label. An answer is used for the question that it was given
   * to: a page may ask another one under the same id before the answer is typed. Digits of the label do not count, since some pages count
   * seconds in it. Each flow has its own key for the hash, because a label may repeat a secret.
   */
  questionOf(asked: ReadField | ReadChoice): string {
    const { id, origin, type, label } = asked;
    const kind = 'key' in asked ? asked.key : [asked.mfaType, asked.provider];
    const text = JSON.stringify([origin, id, type, kind, label.replace(/\d/g, '')]);
    return createHmac('sha256', this.#salt).update(text).digest('base64url').slice(0, 22);
  }

  /**
   * The id of a field. Clients may answer without the id of the question, so an id that one origin asked under is not used for another: an
   * answer that arrives after the page went to another site matches no field there, and is refused.
   */
  idAt({ id, key, origin = '' }: Pick<ReadField, 'id' | 'key' | 'origin'>): string {
    // An answer may name the key of a field instead (submit.ts).
    const isOfOthers = [id, key].some((name) => (this.#askedAt.get(name) ?? origin) !== origin);
    if (!isOfOthers) return id;
    return `${id}@${urlOf(origin)?.host ?? ''}`;
  }

  ask(asked: Questions): void {
    this.asked = asked;
  }

  /** Notes a report. False when it equals the one before: the same question on a page that was drawn again is the same question. */
  isNews(state: FlowState): boolean {
    for (const { id, key, origin = '' } of state.fields)
      for (const name of [id, key]) if (!this.#askedAt.has(name)) this.#askedAt.set(name, origin);
    const before = this.#reported;
    // References to elements are new in each look.
    this.#reported = JSON.stringify(state, (key, value: unknown) =>
      key === 'ref' || key === 'refs' ? undefined : value,
    );
    return this.#reported !== before;
  }

  /** Takes what answers one of the questions. False when nothing does. */
  take({ fieldValues = {}, choiceId, code, fromSource = false, questions = [] }: Submitted): boolean {
    const { fields, choices } = this.asked;
    const answered = new Set(questions);
    let taken = false;
    for (const field of fields) {
      const value = fieldValues[field.id];
      const question = this.questionOf(field);
      if (value === undefined || value === '' || !answered.has(question)) continue;
      this.#answers.set(question, value);
      hideTyped(this.#hidden, field, value);
      taken = true;
    }
    const choice = choices.find(({ id }) => id === choiceId);
    if (choice && answered.has(this.questionOf(choice))) {
      this.#choice = this.questionOf(choice);
      taken = true;
    }
    const codeField = fields.find(isCode);
    if (code !== undefined && code !== '' && codeField) {
      this.#code = { value: code, place: this.#placeOf(codeField.origin), fromSource };
      hideSecret(this.#hidden, code);
      taken = true;
    }
    this.untried ||= taken;
    return taken;
  }

  /** A look begins, which uses the answers that have arrived. */
  tryAnswers(): void {
    this.untried = false;
  }

  get hasAnswered(): boolean {
    return this.#answers.size > 0;
  }

  /** The person has given something that was not used yet. */
  get hasGiven(): boolean {
    return this.hasAnswered || this.#choice !== undefined || this.#code !== undefined;
  }

  /** A source of the credential gave the code that is typed now. */
  get hasSourceCode(): boolean {
    return this.#code?.fromSource === true;
  }

  answerTo(field: ReadField): string | undefined {
    const pushed =
      this.#code && isCode(field) && this.#code.place === this.#placeOf(field.origin) ? this.#code.value : undefined;
    return this.#answers.get(this.questionOf(field)) ?? pushed;
  }

  /** The choice that the person made, if the page still offers it. */
  choiceAmong(choices: readonly ReadChoice[]): ReadChoice | undefined {
    return choices.find((choice) => this.#choice === this.questionOf(choice));
  }

  /** Removes answers to questions that the page does not ask any more. The person is asked again. */
  dropStaleAnswers({ fields }: Reading): void {
    if (fields.length === 0 || this.#answers.size === 0) return;
    const asked = new Set(fields.map((field) => this.questionOf(field)));
    for (const question of this.#answers.keys())
      if (!asked.has(question)) {
        this.#answers.delete(question);
        this.#reported = '';
      }
  }

  dropChoice(): void {
    this.#choice = undefined;
  }

  dropAnswers(): void {
    this.#answers.clear();
    this.#choice = undefined;
    this.#code = undefined;
  }

  useProvider(provider: string): void {
    this.ssoChosen ||= this.#choice !== undefined;
    this.ssoProvider = this.#hidden.secrets.text(provider);
  }

  confirm(host: string): void {
    this.#confirmed.set(host, new Set());
  }

  hasConfirmed(host: string): boolean {
    return this.#confirmed.has(host);
  }

  /** What the person typed in this flow at the site of a document, by the key of the field. */
  typedAt(origin: string | undefined): ReadonlyMap<string, string> {
    return this.#typedAt.get(this.#placeOf(origin) ?? unknownPlace) ?? new Map();
  }

  /** Keeps a value and where it is for: the last identity provider that it was typed at, and the site if it was typed there too. */
  keep(origin: string | undefined, name: string, value: string): void {
    const isOther = this.#typed[name] !== value;
    this.#typed[name] = value;
    this.#origins.set(name, origin ?? '');
    const host = origin === undefined ? undefined : hostOf(origin);
    const isLearned = origin !== undefined && this.#hosts.learned(origin) !== undefined;
    const isOwn = origin !== undefined && !isLearned && this.#hosts.own(origin);
    if (isOther || !isOwn) for (const names of this.#confirmed.values()) names.delete(name);
    if (isOther) this.#atSite.delete(name);
    if (isOwn) this.#atSite.add(name);
    if (origin === undefined || host === undefined) return;
    if ((isLearned || (!isOwn && this.#hosts.sso(origin))) && !this.#confirmed.has(host)) this.confirm(host);
    this.#confirmed.get(host)?.add(name);
  }

  /** Keeps a value also for the same question on a later page of the same site. */
  keepAt(origin: string | undefined, name: string, key: string, value: string): void {
    this.keep(origin, name, value);
    const place = this.#placeOf(origin);
    if (place !== undefined) this.#typedAt.set(place, (this.#typedAt.get(place) ?? new Map()).set(key, value));
  }

  /** The site refused the submitted values. */
  forgetTyped(): void {
    this.#typedAt.clear();
    this.#typed = {};
    for (const names of [...this.#confirmed.values(), this.#atSite]) names.clear();
    this.dropAnswers();
  }

  /** What the connection learns from the person after a success. */
  get learned(): Pick<FlowOutcome, 'typed' | 'typedProvider' | 'ssoHosts'> {
    // The provider, if the person typed everything at its hosts. Its button alone does not show which password was typed.
    const [provider, ...others] = new Set(
      Object.keys(this.#typed).map((name) => this.#hosts.sso(this.#origins.get(name) ?? '')),
    );
    const atProviders = new Set([...this.#confirmed.values()].flatMap((names) => [...names]));
    const atBoth = [...this.#atSite].filter((name) => atProviders.has(name));
    return {
      typed: this.#typed,
      typedProvider: others.length === 0 ? provider : undefined,
      ...(this.#confirmed.size > 0 && {
        ssoHosts: {
          ...Object.fromEntries(Array.from(this.#confirmed, ([host, names]) => [host, [...names]])),
          ...(atBoth.length > 0 && { [theSite]: atBoth }),
        },
      }),
    };
  }

  /** The site of a document: empty for the connection's own hosts, otherwise the host of an identity provider. */
  #placeOf(origin: string | undefined): string | undefined {
    if (origin === undefined) return undefined;
    return this.#hosts.own(origin) ? theSite : hostOf(origin);
  }
}

/** No host has this name, so nothing is kept under it. */
const unknownPlace = '?';

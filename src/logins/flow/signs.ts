import { createHash } from 'node:crypto';
import type { Snapshot } from '../reading/snapshot.ts';
import type { Reading } from '../reading/types.ts';
import { sessionOver } from '../reading/words/texts.ts';
import { isAtPage, pageAddress } from './addresses.ts';
import type { RecipeStep, RecipeSuccess } from './recipe.ts';
import type { Look } from './types.ts';

const mostMarks = 20;
/** Fewer marks say nothing: pages change. */
const leastMarks = 3;
const leastShare = 0.5;
const mostLeft = 0.2;
/** An application that lost its login shows its frame without content. */
const leastSize = 0.4;

/** The controls that a page shows, by what people call them. Names with digits count things and change. */
export function labelsOf(snapshot: Snapshot): string[] {
  const names = snapshot.frames.flatMap(({ elements }) =>
    elements.filter(({ visible }) => visible).map(({ accessibleName }) => accessibleName?.trim() ?? ''),
  );
  return [...new Set(names.filter((name) => name.length > 1 && name.length <= 60 && !/\d/.test(name)))];
}

/** Controls that strangers were not shown, as hashes: a label may be the name of a person. */
export const marksOf = (labels: readonly string[], strange: ReadonlySet<string>): string[] =>
  labels
    .filter((label) => !strange.has(label))
    .slice(0, mostMarks)
    .map(hashOf);

export const sizeOf = ({ frames }: Snapshot): number =>
  frames.reduce(
    (sum, { elements, texts }) =>
      sum + elements.filter(({ visible }) => visible).length + texts.filter(({ visible }) => visible).length,
    0,
  );

/** How much of what success looked like a page still shows. */
export function compare({ snapshot }: Look, { url, marks = [], size = 0 }: RecipeSuccess) {
  const labels = labelsOf(snapshot);
  const shown = new Set(labels.map(hashOf));
  const found = marks.filter((mark) => shown.has(mark)).length;
  const enough = marks.length >= leastMarks;
  return {
    stayed: isAtPage(snapshot.url, url),
    /** Undefined when success left too few marks. */
    marked: enough ? found >= leastShare * marks.length : undefined,
    /** The page shows other things instead: what a site has for strangers. */
    replaced: enough && found <= mostLeft * marks.length && labels.length >= leastMarks,
    whole: sizeOf(snapshot) >= leastSize * size,
  };
}

/** The page has what the first step of a login clicked or typed into, by the same ways to find it. */
export function showsFirstStep({ snapshot }: Look, [first]: readonly RecipeStep[]): boolean {
  if (!first || pageAddress(snapshot.url) !== first.page) return false;
  const visible = snapshot.frames.flatMap(({ elements }) => elements.filter((one) => one.visible && !one.disabled));
  const has = (selectors: readonly string[], label?: string) =>
    visible.some(
      (one) =>
        one.selectors.some((selector) => selectors.includes(selector)) &&
        (label === undefined || (label !== '' && one.accessibleName === label)),
    );
  const { fills, click } = first;
  // A menu may be that of the account.
  if (fills.length === 0 && (!click || click.stoodFor === 'menu')) return false;
  return (
    fills.every(({ selectors }) => has(selectors)) && (!click || fills.length > 0 || has(click.selectors, click.label))
  );
}

/** The page itself says that the login is over. */
export const saysOver = ({ snapshot }: Look): boolean =>
  snapshot.frames.some(({ texts }) =>
    texts.some(({ text, visible }) => visible && text.length <= 160 && sessionOver.in(text)),
  );

/** More names than a person types for one account. A page can ask for sixty in each of forty forms. */
const mostNames = 20;

/** Whether the texts contain one of the last user names, or the part of it before the @. */
export function namesAccount(texts: readonly string[], identifiers: Iterable<string>): boolean {
  const names = [...identifiers]
    .slice(-mostNames)
    .map((name) => name.toLowerCase().replace(/@.*/, ''))
    .filter(({ length }) => length > 2);
  return texts.map((text) => text.toLowerCase()).some((text) => names.some((name) => text.includes(name)));
}

export const hashOf = (label: string) => createHash('sha256').update(label).digest('hex').slice(0, 12);

/** What a page says about whether its visitor is logged in. */
export function saysOf({ kind }: Reading): 'in' | 'out' | 'nothing' {
  switch (kind) {
    case 'signed_in':
      return 'in';
    case 'login':
    case 'code':
    case 'choice':
    case 'external':
    case 'passkey':
    case 'basic':
    case 'entry':
      return 'out';
    default:
      return 'nothing';
  }
}

/** The page offers a login and has no form of one. Applications do so too: for another account, for a service to connect. */
export const isOffer = ({ kind, fields, choices }: Reading) =>
  kind === 'entry' ||
  (kind === 'choice' && fields.length === 0 && choices.every(({ type }) => type === 'sso_provider'));

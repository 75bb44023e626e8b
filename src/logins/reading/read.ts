import { demandRules } from './demands.ts';
import { placeRules } from './places.ts';
import { withPrepared } from './prepare.ts';
import type { Snapshot } from './snapshot.ts';
import type { ReadContext, Reading } from './types.ts';
import { view, type Rule, type View } from './view.ts';
import { formRules } from './form-rules.ts';

/**
 * The rules in their order: the first that finds something decides. What bars a login comes before what asks for one, what asks
 * for something comes before what can be clicked, and rules by words and structure come before the remaining ones.
 */
const rules: readonly Rule[] = [...formRules, ...demandRules, ...placeRules];

/**
 * What a page asks for. Pure: the same snapshot and context always give the same reading. Words of 30 languages help; a page in
 * another language is read by types, autocomplete hints, order and geometry.
 */
export function read(snapshot: Snapshot, context: ReadContext): Reading {
  return withPrepared([snapshot, context.before], () => readPage(snapshot, context));
}

function readPage(snapshot: Snapshot, context: ReadContext): Reading {
  const of = view(snapshot, context);
  const evidence = [
    ...leftOut(snapshot),
    ...of.forms.map(({ kind, why, group }) => `A form with ${group.fields.length} fields ${why}: ${kind}.`),
  ];
  for (const rule of rules) {
    const found = rule.find(of);
    if (found === undefined) continue;
    const { why, ...parts } = found;
    return {
      fields: [],
      choices: [],
      next: [],
      // An application shows errors of its own, which are not about the login.
      ...(of.error === undefined || found.kind === 'signed_in' ? {} : { error: of.error }),
      ...parts,
      evidence: [...evidence.slice(0, 18), ...errorEvidence(of), `Rule ${rule.name}: ${why}.`],
    };
  }
  return {
    kind: 'unknown',
    fields: [],
    choices: [],
    next: [],
    ...(of.error === undefined ? {} : { error: of.error }),
    evidence: [...evidence.slice(0, 18), ...errorEvidence(of), 'No rule found anything that leads to a login.'],
  };
}

function leftOut({ leftOut: left, frames }: Snapshot): string[] {
  if (left !== undefined)
    return [`The page has more than is read: ${left.elements} elements and ${left.texts} texts are left out.`];
  return frames.some(({ truncated }) => truncated) ? ['The page has more than is read.'] : [];
}

function errorEvidence({ error }: View): string[] {
  if (error === undefined) return [];
  return [`The site says "${error.text}" (${error.kind}${error.fresh ? ', new since the submit' : ''}).`];
}

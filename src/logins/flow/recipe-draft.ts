import type { ReadChoice, ReadField, Step } from '../reading/types.ts';
import { pageAddress } from './addresses.ts';
import type { Fill } from './decision.ts';
import type { HiddenValues } from './hidden-values.ts';
import type { RecipeFill, RecipeStep, Requirements } from './recipe.ts';
import { hashOf } from './signs.ts';
import type { Look } from './types.ts';

const mostSteps = 30;
/** A page chooses labels and selectors, and the recipe is stored and read for each login and check. */
const mostCharacters = 64_000;
/** Names that a login needs. A credential has no more values, and a page can ask under 60 other names in each of 40 forms. */
const mostKeys = 100;

/** The steps of this login and what they needed. They become the recipe if the login succeeds. Values are never in it, only their names. */
export class RecipeDraft {
  steps: readonly RecipeStep[] = [];
  requirements: Readonly<Requirements> = {
    keys: [],
    totp: false,
    codes: [],
    external: false,
    passkey: false,
    basic: false,
  };

  addFill(look: Look, fills: readonly Fill[]): void {
    const { submit } = look.reading;
    this.#addOn(look, {
      fills: fills.map(({ field }) => fillOf(field)),
      click: submit && { stoodFor: 'submit', ...partsOf(submit) },
    });
  }

  addStep(look: Look, step: Step): void {
    // A banner that was closed is not there the next time.
    if (step.why !== 'dismiss') this.#addOn(look, { fills: [], click: { stoodFor: step.why, ...partsOf(step) } });
  }

  addChoice(look: Look, choice: ReadChoice): void {
    const { type, mfaType, provider, label } = choice;
    const account = type === 'account';
    this.#addOn(look, {
      fills: [],
      // The label of an account may be the name of a person, so it is kept as a hash.
      click: {
        stoodFor: 'choice',
        ...partsOf(choice),
        ...(account && { label: '' }),
        choice: { type, mfaType, provider, ...(account && { account: hashOf(label) }) },
      },
    });
  }

  addPasskey(look: Look, button: { label: string; selectors: string[] }): void {
    this.need({ passkey: true });
    this.#addOn(look, { fills: [], click: { stoodFor: 'submit', ...partsOf(button) } });
  }

  addBasic(origin: string): void {
    this.need({ basic: true, keys: ['username', 'password'] });
    this.#add({ page: origin, kind: 'basic', fills: [] });
  }

  #addOn({ snapshot, reading }: Look, step: Pick<RecipeStep, 'fills' | 'click'>): void {
    this.#add({ page: pageAddress(snapshot.url), kind: reading.kind, ...step });
  }

  #add(step: RecipeStep): void {
    if (this.steps.length < mostSteps) this.steps = [...this.steps, step];
  }

  /** The site refused the last step, so it is no part of a login that succeeds. */
  removeLast(): void {
    this.steps = this.steps.slice(0, -1);
  }

  clear(): void {
    this.steps = [];
  }

  need(part: Partial<Requirements>): void {
    this.requirements = { ...this.requirements, ...part };
  }

  needKey(key: string): void {
    const { keys } = this.requirements;
    if (keys.length < mostKeys && !keys.includes(key)) this.need({ keys: [...keys, key] });
  }

  needCode(channel: Requirements['codes'][number]): void {
    const { codes } = this.requirements;
    if (!codes.includes(channel)) this.need({ codes: [...codes, channel] });
  }

  /** The first steps that fit, without typed values. The next login does the steps after them by reading the pages. */
  stepsToKeep(hidden: HiddenValues): RecipeStep[] {
    let room = mostCharacters;
    const steps = this.steps.map((step) => withoutTyped(hidden, step));
    const end = steps.findIndex((step) => (room -= JSON.stringify(step).length) < 0);
    return end === -1 ? steps : steps.slice(0, end);
  }
}

const partsOf = ({ label, selectors }: { label: string; selectors: string[] }) => ({
  label,
  selectors: [...selectors],
});

function fillOf(field: ReadField): RecipeFill {
  const { key, type, options } = field;
  return { key, type, ...partsOf(field), ...(options && { select: true }) };
}

/** Pages repeat typed values: "Password for alice". A selector that contains one is removed. */
function withoutTyped({ scrub, secrets }: HiddenValues, { page, kind, fills, click }: RecipeStep): RecipeStep {
  return {
    page: secrets.text(page),
    kind,
    fills: fills.map((one) => ({ ...one, label: scrub.text(one.label), selectors: scrub.without(one.selectors) })),
    ...(click && { click: { ...click, label: scrub.text(click.label), selectors: scrub.without(click.selectors) } }),
  };
}

import { keptAddress } from './addresses.ts';
import type { StateFingerprint } from './browser.ts';
import type { Flow } from './context.ts';
import type { RecipeSuccess } from './recipe.ts';
import { labelsOf, saysOf, saysOver, showsFirstStep, sizeOf } from './signs.ts';
import type { FlowOutcome, Look } from './types.ts';

const mostCookies = 40;

/** The outcome of a login that a second page, at the final address, has confirmed. The recipe is for the next login. */
export function success(
  flow: Flow,
  second: Look,
  after: StateFingerprint,
  { entrySays, isPast }: { entrySays: RecipeSuccess['entrySays']; isPast: boolean },
): FlowOutcome {
  const { draft, evidence, scrub } = flow;
  const { snapshot, reading } = second;
  const { requirements } = draft;
  const url = addressToKeep(flow, snapshot.url);
  const { cookies, storage } = evidence.changes(after);
  const recipe = {
    version: 1 as const,
    entryUrl: entryOf(flow, url),
    steps: draft.stepsToKeep(flow),
    success: {
      url,
      cookies: cookies.slice(0, mostCookies),
      storage,
      signedInSigns: saysOf(reading) === 'in',
      kind: reading.kind,
      ...(second.inMenu && { inMenu: true }),
      ...(evidence.wasThere(second) && { formTook: evidence.formTook }),
      ...(showsFirstStep(second, draft.steps) && { startShown: true }),
      ...(saysOver(second) && { over: true }),
      ...(entrySays && { entrySays }),
      marks: evidence.marks(scrub.without(labelsOf(snapshot))),
      size: sizeOf(snapshot),
    },
    requirements,
    learnedAt: new Date(flow.now()).toISOString(),
  };
  return {
    status: 'SUCCESS',
    postLoginUrl: url,
    // A profile that was logged in teaches nothing that a login before it has not: the steps to its account are none of a login.
    ...(draft.steps.length > 0 && (isPast || !flow.input.recipe) && { recipe, requirements }),
    ...flow.person.learned,
  };
}

/** Where the next login begins, and where a check sees whether there is a form again. */
export function entryOf(flow: Flow, postLoginUrl: string): string {
  const { loginUrl } = flow.input.connection;
  const { evidence, page } = flow;
  return loginUrl ?? addressToKeep(flow, evidence.loginPage?.snapshot.url ?? page.answered ?? postLoginUrl);
}

/** The address without the parameters that passed the login on; only the origin of an address that contains a secret. */
export function addressToKeep({ secrets }: Flow, url: string): string {
  const kept = keptAddress(url);
  return secrets.text(kept) === kept ? kept : new URL('/', kept).href;
}

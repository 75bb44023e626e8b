import type { OpenCredential } from '../../credentials/service.ts';
import { act } from './act.ts';
import { startAfresh } from './afresh.ts';
import { entryAddresses, guessedAddresses, shownAddress } from './addresses.ts';
import { FormsError, isFrozen, type FlowBrowser } from './browser.ts';
import { isCode } from './codes.ts';
import { confirm } from './confirm.ts';
import { newFlow, type Flow } from './context.ts';
import { decide } from './decide.ts';
import { isRefusal, type Decision } from './decision.ts';
import { expired, FlowEnd } from './ends.ts';
import { explain } from './explain.ts';
import { checkWith } from './health.ts';
import { hideCredential } from './hidden-values.ts';
import { isHttps } from './hosts.ts';
import { asksAgain } from './judge.ts';
import { lookAt } from './look.ts';
import { pause } from './pause.ts';
import { credentialAt, refusal } from './permission.ts';
import { replayed } from './replay.ts';
import { report } from './report.ts';
import { flowStates, type FlowStateName, type Stay } from './states.ts';
import type { FlowInput, FlowOutcome, Look, Reader } from './types.ts';
import { awaitChange } from './wait.ts';

type Handler = (flow: Flow, signal: AbortSignal) => Promise<FlowStateName | FlowOutcome>;

/** What each state does. How long it may take, and what happens then, is in `flowStates`. */
const handlers: Record<FlowStateName, Handler> = {
  opening: open,
  looking: look,
  entering: enter,
  acting: act,
  responding: respond,
  awaiting_input: (flow, signal) => awaitChange(flow, 'AWAITING_INPUT', signal),
  awaiting_external: (flow, signal) => awaitChange(flow, 'AWAITING_EXTERNAL_ACTION', signal),
  confirming: confirm,
};

/** Runs one flow to its end. It never throws: errors are outcomes too. */
export async function runWith(read: Reader, input: FlowInput): Promise<FlowOutcome> {
  const flow = newFlow(input, read);
  const endsAt = flow.now() + flow.deadlines.total;
  let state: FlowStateName = 'opening';
  try {
    for (;;) {
      const here: FlowStateName = state;
      const next: FlowStateName | FlowOutcome = await stay(flow, here, endsAt).catch((error: unknown) =>
        lookAgain(flow, here, error),
      );
      if (typeof next !== 'string') {
        await report(flow, { step: 'COMPLETED', fields: [], choices: [] });
        const { givenCodes: acceptedCodes } = flow.factors;
        return { ...next, ...(await learned(flow)), requirements: next.requirements, acceptedCodes };
      }
      state = next;
    }
  } catch (error) {
    const end = endOf(flow, error);
    if (flow.attempt.decision?.do !== 'end') await explain(flow, state, end.message);
    return {
      ...(await learned(flow)),
      ...outcomeOf(flow, end),
      ...(end.code === 'internal_error' && { cause: error }),
    };
  }
}

/**
 * An element was removed, or cannot be used: the page is read again, without the recipe, for as long as it can be read. A page
 * that navigates by itself and a recipe that is out of date look like that too. A page that computes is read when it answers again; one
 * that does not is given up in `looking`, which waits for it.
 */
async function lookAgain(flow: Flow, state: FlowStateName, error: unknown): Promise<FlowStateName> {
  if (
    isFrozen(error) &&
    !flow.input.signal.aborted &&
    !['opening', 'looking'].includes(state) &&
    flow.attempt.freeze()
  ) {
    await explain(flow, state, 'The page did not answer, so it is waited for and read again.');
    return 'looking';
  }
  const again = error instanceof FormsError && ['stale', 'unreachable', 'unfit'].includes(error.fault);
  if (!again || flow.input.signal.aborted || state === 'opening' || flow.attempt.miss()) throw error;
  await explain(flow, state, `An element could not be used, so the page is read again: ${error.message}`);
  return 'looking';
}

/** Stays in one state until it is done, or until its time is over. */
async function stay(flow: Flow, state: FlowStateName, endsAt: number): Promise<FlowStateName | FlowOutcome> {
  const { step, deadline, stays } = flowStates[state];
  const facts = factsOf(flow);
  const leaveAt = Math.min(flow.now() + deadline(facts), endsAt);
  if (step && !step.startsWith('AWAITING'))
    await report(flow, { step, fields: [], choices: [], websiteError: flow.attempt.websiteError });
  const leave = new AbortController();
  const signal = AbortSignal.any([flow.input.signal, leave.signal]);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    leave.abort(new Error('The state took too long.'));
  }, leaveAt - flow.now());
  // Work that continues after the deadline must not use the browser any more.
  const browser = guarded(flow.input.browser, signal);
  try {
    return await Promise.race([handlers[state]({ ...flow, browser }, signal), aborted(signal)]);
  } catch (error) {
    if (!late || flow.input.signal.aborted) throw error;
    if (flow.now() >= endsAt && !step?.startsWith('AWAITING'))
      throw expired('flow_failed', 'The login took longer than a flow may take.');
    if (typeof stays === 'string') return stays;
    throw stays(factsOf(flow));
  } finally {
    clearTimeout(timer);
    leave.abort(new Error('The flow has left the state.'));
  }
}

function factsOf(flow: Flow): Stay {
  return {
    deadlines: flow.deadlines,
    reauth: flow.input.flowType === 'REAUTH',
    asksCode: flow.person.asked.fields.some(isCode),
    captcha: flow.page.look?.reading.kind === 'captcha',
  };
}

const aborted = (signal: AbortSignal) =>
  new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    if (signal.aborted) reject(signal.reason as Error);
  });

/** The browser for as long as the signal has not fired. Closing a page is always possible. */
function guarded(browser: FlowBrowser, signal: AbortSignal): FlowBrowser {
  return new Proxy(browser, {
    get(target, name: keyof FlowBrowser) {
      if (name !== 'close') signal.throwIfAborted();
      const member = target[name];
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

async function open(flow: Flow): Promise<FlowStateName> {
  const { browser, page } = flow;
  const { connection, recipe, passkeys = [] } = flow.input;
  page.tryAddresses(entryAddresses(connection, recipe));
  await page.open(browser);
  if (passkeys.length > 0) await flow.factors.enablePasskeys(browser, page.id, passkeys, flow.hosts.passkeys);
  return nextAddress(flow);
}

/** The next address that answers. An address that does not answer does not end the flow: the next one may. */
async function nextAddress(flow: Flow): Promise<FlowStateName> {
  if (await flow.page.enter(flow.browser)) return 'looking';
  const { answered, unanswered } = flow.page;
  if (answered === undefined) {
    const plain = unanswered.some(({ url }) => !isHttps(url));
    const remedy = plain ? '' : ' If it has no https, set login_url to its address with http://.';
    const error = unanswered[0]?.error ?? 'it has no address';
    throw new FlowEnd('network_error', `The site does not answer: ${error}.${remedy}`);
  }
  const barred = unanswered.find(({ url }) => mayHaveForm(flow, url, answered));
  if (barred)
    throw new FlowEnd(
      'network_error',
      `No page that answers has a login form, and ${shownAddress(barred.url)} does not answer: ${barred.error}.`,
    );
  throw new FlowEnd(
    'login_form_not_found',
    'No page of the site has a login form. Set login_url to the page that has it.',
  );
}

/**
 * An address that failed where the login form is expected: the given or learned address, or a page of a site that
 * answers elsewhere. Another scheme or name of the site that does not answer says nothing.
 */
function mayHaveForm({ input: { connection, recipe } }: Flow, url: string, answered: string): boolean {
  return url === connection.loginUrl || url === recipe?.entryUrl || new URL(url).origin === new URL(answered).origin;
}

/** No link opened a login form: tries the start page, then common paths of login pages. */
async function enter(flow: Flow, signal: AbortSignal): Promise<FlowStateName> {
  const { page, evidence } = flow;
  page.followOwnWindows();
  if (page.addresses.length === 0 && !page.guessed) {
    const { connection, recipe, browser } = flow.input;
    const { patience, coming } = flow.deadlines;
    if (connection.postLoginUrl !== undefined && !evidence.checked) {
      evidence.check();
      if ((await checkWith(flow.read, { browser, connection, recipe, signal, patience, coming })) === 'authenticated') {
        await page.goTo(flow.browser, connection.postLoginUrl);
        evidence.check(true);
        await lookAt(flow, signal, 10_000);
        return 'confirming';
      }
    }
    if (await startAfresh(flow)) return 'looking';
    page.tryAddresses(guessedAddresses(connection, page.answered), true);
  }
  return nextAddress(flow);
}

async function look(flow: Flow, signal: AbortSignal): Promise<FlowStateName> {
  const { attempt, evidence, page, person } = flow;
  person.tryAnswers();
  const seen = await lookAt(flow, signal, 10_000);
  if (attempt.fills === 0) evidence.addBefore(seen);
  person.dropStaleAnswers(seen.reading);
  page.allow(await credentialFor(flow, seen));
  const decision = await replayed(flow, seen, decide(flow, seen));
  await explain(flow, 'looking', decision.why, seen);
  signal.throwIfAborted();
  takeNote(flow, seen, decision);
  return follow(flow, decision);
}

/** If a lookup fails, the person is asked, and the flow continues. */
async function credentialFor(flow: Flow, seen: Look): Promise<OpenCredential | undefined> {
  const credential = await flow.input.credential().catch(() => undefined);
  if (credential) hideCredential(flow, credential);
  // The password of the site is not typed at an identity provider that a person chose, unless it is that one's.
  return credential && credentialAt(flow, credential, seen);
}

/** What the judgement of the last answer means for what follows. */
function takeNote(flow: Flow, seen: Look, decision: Decision): void {
  const { attempt, draft, evidence, factors, person } = flow;
  // A step that is tried again is no part of a login that succeeds.
  if (attempt.unjudged && decision.do === 'fill' && asksAgain(flow, seen)) draft.removeLast();
  factors.judge(seen.reading, attempt.unjudged);
  if (decision.do === 'confirm' && decision.byPerson) evidence.believePerson();
  attempt.decide(seen, decision);
  if (!person.choiceAmong(seen.reading.choices)) person.dropChoice();
  if (!isRefusal(decision)) return;
  person.forgetTyped();
  draft.removeLast();
}

function follow(flow: Flow, decision: Decision): FlowStateName {
  switch (decision.do) {
    case 'end':
      throw decision.end;
    case 'confirm':
      return 'confirming';
    case 'ask':
      flow.person.ask({ fields: decision.fields, choices: decision.choices });
      return 'awaiting_input';
    case 'external':
      flow.person.ask({ fields: decision.fields, choices: decision.choices, message: decision.message });
      return 'awaiting_external';
    case 'enter':
      return 'entering';
    case 'start_over':
      flow.page.tryAddresses(entryAddresses(flow.input.connection, flow.input.recipe));
      return 'entering';
    default:
      return 'acting';
  }
}

const mostQuiet = 8;

/** The page's answer. A page that does not change at once may still be asking its server. */
async function respond(flow: Flow, signal: AbortSignal): Promise<FlowStateName> {
  const { look: last } = flow.page;
  const asked = last?.key;
  const oldError = last?.reading.error?.text;
  // After a click there may be nothing to wait for; after a submit there is always an answer.
  const until =
    flow.now() + flow.deadlines.patience * (flow.attempt.decision?.do === 'fill' && oldError === undefined ? 20 : 6);
  for (let quiet = 0; ;) {
    const began = flow.now();
    const seen = await lookAt(flow, signal, flow.deadlines.page);
    // A page that settles at once several times in a row does not wait for its server.
    quiet = flow.now() - began < 3 * flow.deadlines.patience ? quiet + 1 : 0;
    const same = seen.key === asked;
    // A page that is recognised need not finish loading: one of its pictures may never arrive.
    const waits =
      (seen.snapshot.loading && (same || ['blank', 'unknown'].includes(seen.reading.kind))) ||
      (same && (!seen.reading.error?.fresh || seen.reading.error.text === oldError));
    if (!waits || flow.now() >= until || (quiet > mostQuiet && !seen.snapshot.loading)) return 'looking';
    await pause(flow.deadlines.patience, signal);
  }
}

function endOf(flow: Flow, error: unknown): FlowEnd {
  if (flow.input.signal.aborted) return new FlowEnd('flow_failed', 'The flow was cancelled.', undefined, 'CANCELED');
  if (error instanceof FlowEnd) return error;
  if (error instanceof FormsError) {
    if (error.fault === 'foreign') return new FlowEnd('domain_not_allowed', refusal(flow, error.origin));
    if (error.fault === 'stale' || error.fault === 'unreachable')
      return new FlowEnd('element_not_found', `An element of the page could not be used: ${error.message}`);
    return new FlowEnd('browser_error', `The browser could not go on: ${error.message}`);
  }
  return new FlowEnd('internal_error', 'The flow failed for a reason of its own. The log has more.');
}

function outcomeOf(flow: Flow, end: FlowEnd): FlowOutcome {
  return {
    status: end.status,
    ...(end.status !== 'CANCELED' && { errorCode: end.code, errorMessage: flow.scrub.text(end.message) }),
    ...(end.websiteError !== undefined && { websiteError: flow.scrub.text(end.websiteError) }),
    typed: {},
  };
}

/** What must not be lost, however the flow ends. */
async function learned({ factors, input, person }: Flow): Promise<Omit<FlowOutcome, 'status' | 'typed'>> {
  // The site knows a new passkey, and how often each was used, also if the login failed.
  const passkeys = factors.passkeysEnabled ? await input.browser.passkeys.exported().catch(() => []) : [];
  return {
    ...(passkeys.length > 0 && { passkeys }),
    ...(factors.totpSecret !== undefined && { totpSecret: factors.totpSecret }),
    ...(factors.lastCounter !== undefined && { totpCounter: factors.lastCounter }),
    ...(person.ssoProvider !== undefined && { ssoProvider: person.ssoProvider }),
  };
}

import { parseTotp, totpCode } from '../../credentials/totp.ts';
import type { ReadChoice, ReadField, Step } from '../reading/types.ts';
import { FormsError, isPassing, type Action, type Allow } from './browser.ts';
import { isCode } from './codes.ts';
import type { Flow } from './context.ts';
import type { Decision } from './decision.ts';
import { FlowEnd } from './ends.ts';
import { fill } from './fill.ts';
import { hideSecret, hideTyped } from './hidden-values.ts';
import { lookNow, patiently } from './look.ts';
import { pause } from './pause.ts';
import { allowFor, mayTypeAt, pageOrigin, type Origin } from './permission.ts';
import type { FlowStateName } from './states.ts';
import type { Look } from './types.ts';
import { valueFor, type FoundValue } from './values.ts';

/** Executes a decision. */
export async function act(flow: Flow, signal: AbortSignal): Promise<FlowStateName> {
  const { attempt, evidence, page, person } = flow;
  const look = page.look!;
  const { decision } = attempt;
  if (decision?.do !== 'wait') attempt.count(look);
  if (decision && submits.has(decision.do))
    await patiently(flow, signal, () =>
      evidence.noteLogin(look, flow.browser, { id: page.id, waitedFor: page.waitedFor }),
    );
  // A banner that is closed beside the question for a code does not make the site send one.
  const sends = decision && (submits.has(decision.do) || (decision.do === 'click' && decision.step.why !== 'dismiss'));
  if (sends) attempt.send(flow.now());
  switch (decision?.do) {
    case 'fill':
      return (await fill(flow, decision.look ?? look, decision.plan, signal)) ? 'responding' : 'looking';
    case 'click':
      return click(flow, look, decision.step);
    case 'choose':
      return choose(flow, look, decision.choice, signal);
    case 'basic':
      return basic(flow, look);
    case 'trust':
      person.dropChoice();
      person.confirm(decision.host);
      return 'looking';
    case 'passkey':
      return passkey(flow, look);
    case 'enrol':
      return enrol(flow, look, signal);
    case 'wait':
      await pause(flow.deadlines.patience * Math.min(page.waitForContent(flow.now()), mostSteps), signal);
      return 'looking';
    default:
      throw new Error(`A flow cannot act on ${decision?.do}.`);
  }
}

/** Waits for a page get longer by a step each, up to so many. */
const mostSteps = 5;

const submits = new Set<Decision['do']>(['fill', 'choose', 'basic', 'passkey']);

async function click(flow: Flow, look: Look, step: Step): Promise<FlowStateName> {
  flow.attempt.addTried(look, step);
  await flow.page.rememberPages(flow.browser);
  flow.draft.addStep(look, step);
  await clickOn(
    flow,
    step.act === 'check' ? { kind: 'check', ref: step.ref, on: true } : { kind: 'click', ref: step.ref },
  );
  return 'responding';
}

async function choose(flow: Flow, look: Look, choice: ReadChoice, signal: AbortSignal): Promise<FlowStateName> {
  const { attempt, browser, page, person } = flow;
  attempt.addTried(look, choice);
  if (choice.type === 'sso_provider') person.useProvider(choice.provider ?? choice.label);
  person.dropChoice();
  await page.rememberPages(browser);
  flow.draft.addChoice(look, choice);
  await clickOn(flow, { kind: 'click', ref: choice.ref });
  attempt.chose(look);
  // A choice among radio buttons is sent by a button beside them.
  try {
    const chosen = await patiently(flow, signal, () => lookNow(flow));
    if (
      chosen.key === look.key &&
      look.reading.kind === 'choice' &&
      look.reading.fields.length === 0 &&
      chosen.reading.submit
    )
      await browser.act(page.id, { kind: 'click', ref: chosen.reading.submit.ref });
  } catch (error) {
    if (!isPassing(error)) throw error;
  }
  return 'responding';
}

/** The page is read again if an element was removed or is covered, or if the page computes something for the click. No step is tried twice. */
async function clickOn(flow: Flow, action: Action): Promise<void> {
  try {
    await flow.browser.act(flow.page.id, action);
  } catch (error) {
    if (!(error instanceof FormsError) || error.fault === 'foreign') throw error;
  }
}

async function basic(flow: Flow, look: Look): Promise<FlowStateName> {
  const { draft, factors, person } = flow;
  const values = flow.page.credential?.values ?? {};
  const basicFields = basicFieldsOf(look).map((field) => ({ ...field, id: person.idAt(field) }));
  const [name, password] = basicFields.map((field): Partial<FoundValue> & Origin => {
    const given = person.answerTo(field);
    return {
      from: given === undefined ? 'credential' : 'person',
      ...(given === undefined ? valueFor(field, values) : { value: given }),
    } as const;
  });
  if (factors.basicSent > 0 && name?.from !== 'person' && password?.from !== 'person')
    throw new FlowEnd('credentials_invalid', 'The site refuses the user name and the password (HTTP Basic).');
  if (name?.value === undefined || password?.value === undefined) {
    person.ask({ fields: basicFields, choices: [] });
    return 'awaiting_input';
  }
  if (factors.sendBasic() > 2)
    throw new FlowEnd('max_attempts_reached', 'The site refused HTTP Basic credentials twice.');
  for (const [index, { from, value }] of [name, password].entries()) {
    hideTyped(flow, basicFields[index]!, value!);
    if (from === 'person') person.keep(basicFields[index]!.origin, basicFields[index]!.key, value!);
  }
  person.dropAnswers();
  const allow: Allow = (origin) => [name, password].every((one) => allowFor(flow, one)(origin));
  await flow.browser.basicAuth(flow.page.id, { username: name.value, password: password.value, allow });
  draft.addBasic(look.snapshot.basicAuth?.origin ?? '');
  return 'responding';
}

function basicFieldsOf({ snapshot: { basicAuth } }: Look): ReadField[] {
  const at = basicAuth && { origin: basicAuth.origin };
  const field = { required: true, filled: false, selectors: [], ref: '', ...at };
  return [
    { ...field, id: 'username', type: 'identifier', key: 'username', label: 'User name', legacyType: 'text' },
    { ...field, id: 'password', type: 'password', key: 'password', label: 'Password', legacyType: 'password' },
  ];
}

/** Uses a passkey of an earlier flow; lets the site create one where the flow may keep it. */
async function passkey(flow: Flow, look: Look): Promise<FlowStateName> {
  const { attempt, draft, factors, page } = flow;
  const { passkeys = [], mayEnrol } = flow.input;
  const creates = factors.hasSubmittedPassword && mayEnrol;
  const { submit, next, choices } = look.reading;
  const target = submit ?? next[0] ?? choices[0];
  // Each button once: a site may ask for the passkey that it has just had created.
  const tried = { why: 'passkey', label: target?.label ?? '' };
  if (attempt.hasTried(look, tried) || (passkeys.length === 0 && !creates))
    throw new FlowEnd('unsupported_auth_method', 'The site takes nothing but a passkey, and there is none for it.');
  if (!target) throw new FlowEnd('unsupported_auth_method', 'The site asks for a passkey without a button to give it.');
  attempt.addTried(look, tried);
  await factors.enablePasskeys(flow.browser, page.id, passkeys, flow.hosts.passkeys);
  await page.rememberPages(flow.browser);
  await clickOn(flow, { kind: 'pick', ref: target.ref, allow: (origin) => mayTypeAt(flow, origin) });
  draft.addPasskey(look, target);
  return 'responding';
}

/** Sets up codes of an authenticator app with the secret that the page shows, where the flow may keep it and types codes of the credential. */
async function enrol(flow: Flow, look: Look, signal: AbortSignal): Promise<FlowStateName> {
  const { draft, factors } = flow;
  const { totpSecret, fields } = look.reading;
  const field = fields.find(isCode);
  const totp = totpSecret === undefined ? undefined : readable(totpSecret);
  // The credential would keep the secret for the site, and replace the one that it has.
  const isForCodes = field !== undefined && allowFor(flow, { from: 'code' })(field.origin ?? pageOrigin(look.snapshot));
  if (!flow.input.mayEnrol || !totp || !isForCodes || factors.enrolTried) {
    const message = 'The site demands to set up two-factor login. Do so in the live view.';
    flow.person.ask({ fields: [], choices: [], message });
    return 'awaiting_external';
  }
  for (const secret of [totpSecret, totpSecret?.replace(/\s/g, ''), totp.secret]) hideSecret(flow, secret);
  const code = totpCode(totp, flow.now());
  factors.enrol(totpSecret!, code.counter);
  draft.need({ totp: true });
  const plan = { fills: [{ field, value: code.code, from: 'person' as const }], missing: [] };
  const { codes } = draft.requirements;
  const done = await fill(flow, look, plan, signal);
  // The next login generates its code too.
  draft.need({ codes });
  return done ? 'responding' : 'looking';
}

function readable(secret: string) {
  try {
    return parseTotp(secret);
  } catch {
    return undefined;
  }
}

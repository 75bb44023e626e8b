import type { OpenCredential } from '../../credentials/service.ts';
import { parseTotp, totpCode } from '../../credentials/totp.ts';
import type { ReadChoice, ReadField, Step } from '../reading/types.ts';
import { FormsError, type Action, type Allow } from './browser.ts';
import { choiceKey } from './choose.ts';
import { stepKey } from './decision.ts';
import { FlowEnd } from './ends.ts';
import { fill, isPassing } from './fill.ts';
import { hideTyped, pause, type Flow, type Look } from './flow.ts';
import { lookNow, rememberPages } from './look.ts';
import { learnChoice, learnStep } from './recipe.ts';
import type { FlowStateName } from './states.ts';
import { allowFor, mayTypeAt, type Origin } from './permission.ts';
import { idAt, questionOf } from './questions.ts';
import { valueFor, type FoundValue } from './values.ts';

const mostActs = 40;
const mostVisits = 3;

/** Does what was decided. Every act counts: a site that leads in circles is left. */
export async function act(
  flow: Flow,
  look: Look,
  credential: OpenCredential | undefined,
  signal: AbortSignal,
): Promise<FlowStateName> {
  const { decision } = flow;
  count(flow, look);
  switch (decision?.do) {
    case 'fill':
      await noteBaseline(flow, look);
      return (await fill(flow, decision.look ?? look, decision.plan, credential, signal)) ? 'responding' : 'looking';
    case 'click':
      return click(flow, look, decision.step);
    case 'choose':
      await noteBaseline(flow, look);
      return choose(flow, look, decision.choice);
    case 'basic':
      await noteBaseline(flow, look);
      return basic(flow, look, credential);
    case 'trust':
      flow.pending.choice = undefined;
      flow.confirmed.set(decision.host, new Set());
      return 'looking';
    case 'passkey':
      await noteBaseline(flow, look);
      return passkey(flow, look);
    case 'enrol':
      return enrol(flow, look, credential, signal);
    case 'wait':
      flow.blankWaits++;
      await pause(flow.deadlines.patience * flow.blankWaits, signal);
      return 'looking';
    default:
      throw new Error(`A flow cannot act on ${decision?.do}.`);
  }
}

function count(flow: Flow, look: Look): void {
  if (flow.decision?.do === 'wait') return;
  if (++flow.acts > mostActs)
    throw new FlowEnd('max_steps_exceeded', `The login was not done after ${mostActs} steps.`);
  const visits = (flow.visits.get(look.key) ?? 0) + 1;
  flow.visits.set(look.key, visits);
  if (visits > mostVisits)
    throw new FlowEnd('stuck_in_loop', 'The site shows the same page again and again.', {
      websiteError: look.reading.error?.text,
    });
}

/** Cookies and storage before the first submit, to see what the login changes. */
async function noteBaseline(flow: Flow, look: Look): Promise<void> {
  flow.loginPage ??= look;
  flow.baseline ??= await flow.browser.state(flow.pageId);
}

async function click(flow: Flow, look: Look, step: Step): Promise<FlowStateName> {
  flow.tried.add(stepKey(look, step));
  await rememberPages(flow);
  learnStep(flow, look, step);
  await clickOn(
    flow,
    step.act === 'check' ? { kind: 'check', ref: step.ref, on: true } : { kind: 'click', ref: step.ref },
  );
  return 'responding';
}

async function choose(flow: Flow, look: Look, choice: ReadChoice): Promise<FlowStateName> {
  const byPerson = flow.pending.choice !== undefined;
  flow.pending.choice = undefined;
  flow.tried.add(choiceKey(look, choice));
  if (choice.type === 'sso_provider') {
    flow.ssoChosen ||= byPerson;
    flow.ssoProvider = flow.secrets.text(choice.provider ?? choice.label);
  }
  await rememberPages(flow);
  learnChoice(flow, look, choice);
  await clickOn(flow, { kind: 'click', ref: choice.ref });
  flow.before = look;
  flow.submitted = ['choice'];
  flow.unjudged = true;
  flow.websiteError = undefined;
  // A choice among radio buttons is sent by a button beside them.
  try {
    const chosen = await lookNow(flow);
    if (
      chosen.key === look.key &&
      look.reading.kind === 'choice' &&
      look.reading.fields.length === 0 &&
      chosen.reading.submit
    )
      await flow.browser.act(flow.pageId, { kind: 'click', ref: chosen.reading.submit.ref });
  } catch (error) {
    if (!isPassing(error)) throw error;
  }
  return 'responding';
}

/** An element that is gone or covered leads to another look: it sees what is there instead, and tries no step twice. */
async function clickOn(flow: Flow, action: Action): Promise<void> {
  try {
    await flow.browser.act(flow.pageId, action);
  } catch (error) {
    if (!(error instanceof FormsError) || error.fault === 'frozen' || error.fault === 'foreign') throw error;
  }
}

async function basic(flow: Flow, look: Look, credential: OpenCredential | undefined): Promise<FlowStateName> {
  const values = credential?.values ?? {};
  const basicFields = basicFieldsOf(look).map((field) => ({ ...field, id: idAt(flow, field) }));
  const [name, password] = basicFields.map((field): Partial<FoundValue> & Origin => {
    const given = flow.pending.values.get(questionOf(flow, field));
    return {
      from: given === undefined ? 'credential' : 'person',
      ...(given === undefined ? valueFor(field, values) : { value: given }),
    } as const;
  });
  if (flow.basicSent > 0 && name?.from !== 'person' && password?.from !== 'person')
    throw new FlowEnd('credentials_invalid', 'The site refuses the user name and the password (HTTP Basic).');
  if (name?.value === undefined || password?.value === undefined) {
    flow.asked = { fields: basicFields, choices: [] };
    return 'awaiting_input';
  }
  flow.basicSent++;
  if (flow.basicSent > 2) throw new FlowEnd('max_attempts_reached', 'The site refused HTTP Basic credentials twice.');
  for (const [index, { from, value }] of [name, password].entries()) {
    hideTyped(flow, basicFields[index]!, value!);
    if (from === 'person') flow.typed[basicFields[index]!.key] = value!;
  }
  flow.pending = { values: new Map() };
  flow.requirements.basic = true;
  flow.requirements.keys = ['username', 'password'];
  const allow: Allow = (origin) => [name, password].every((one) => allowFor(flow, one, credential)(origin));
  await flow.browser.basicAuth(flow.pageId, { username: name.value, password: password.value, allow });
  flow.steps.push({ page: look.snapshot.basicAuth?.origin ?? '', kind: 'basic', fills: [] });
  return 'responding';
}

function basicFieldsOf({ snapshot: { basicAuth } }: Look): ReadField[] {
  const field = {
    required: true,
    filled: false,
    selectors: [],
    ref: '',
    ...(basicAuth && { origin: basicAuth.origin }),
  };
  return [
    { ...field, id: 'username', type: 'identifier', key: 'username', label: 'User name', legacyType: 'text' },
    { ...field, id: 'password', type: 'password', key: 'password', label: 'Password', legacyType: 'password' },
  ];
}

/** Uses a passkey of an earlier flow; lets the site create one where the flow may keep it. */
async function passkey(flow: Flow, look: Look): Promise<FlowStateName> {
  const { passkeys = [], mayEnrol } = flow.input;
  const creates = flow.passwordSubmits.size > 0 && mayEnrol;
  const { submit, next, choices } = look.reading;
  const target = submit ?? next[0] ?? choices[0];
  // Each button once: a site may ask for the passkey that it has just had created.
  const tried = `passkey ${look.key} ${target?.label ?? ''}`;
  if (flow.tried.has(tried) || (passkeys.length === 0 && !creates))
    throw new FlowEnd('unsupported_auth_method', 'The site takes nothing but a passkey, and there is none for it.');
  if (!target) throw new FlowEnd('unsupported_auth_method', 'The site asks for a passkey without a button to give it.');
  flow.tried.add(tried);
  await enablePasskeys(flow);
  flow.requirements.passkey = true;
  await rememberPages(flow);
  await clickOn(flow, { kind: 'pick', ref: target.ref, allow: (origin) => mayTypeAt(flow, origin) });
  flow.steps.push({
    page: look.snapshot.url.split(/[?#]/)[0] ?? '',
    kind: 'passkey',
    fills: [],
    click: { stoodFor: 'submit', label: target.label, selectors: [...target.selectors] },
  });
  return 'responding';
}

export async function enablePasskeys(flow: Flow): Promise<void> {
  if (flow.passkeysEnabled) return;
  flow.passkeysEnabled = true;
  await flow.browser.passkeys.enable(flow.pageId);
  if (flow.input.passkeys?.length)
    await flow.browser.passkeys.add(flow.pageId, flow.input.passkeys, flow.hosts.passkeys);
}

/** Sets up codes of an authenticator app with the secret that the page shows, where the flow may keep it. */
async function enrol(
  flow: Flow,
  look: Look,
  credential: OpenCredential | undefined,
  signal: AbortSignal,
): Promise<FlowStateName> {
  const { totpSecret, fields } = look.reading;
  const field = fields.find(({ type }) => type === 'code' || type === 'totp_code');
  const totp = totpSecret === undefined ? undefined : readable(totpSecret);
  if (!flow.input.mayEnrol || !totp || !field || flow.enrolTried) {
    flow.asked = {
      fields: [],
      choices: [],
      message: 'The site demands to set up two-factor login. Do so in the live view.',
    };
    return 'awaiting_external';
  }
  flow.enrolTried = true;
  flow.totpSecret = totpSecret;
  for (const secret of [totpSecret, totpSecret?.replace(/\s/g, ''), totp.secret])
    for (const scrub of [flow.scrub, flow.secrets]) scrub.add(secret);
  const code = totpCode(totp, flow.now());
  flow.lastCounter = code.counter;
  flow.requirements.totp = true;
  const plan = { fills: [{ field, value: code.code, from: 'person' as const }], missing: [] };
  const before = [...flow.requirements.codes];
  const done = await fill(flow, look, plan, credential, signal);
  // The code was made here, and the next one is too.
  flow.requirements.codes = before;
  return done ? 'responding' : 'looking';
}

function readable(secret: string) {
  try {
    return parseTotp(secret);
  } catch {
    return undefined;
  }
}

import type { ReadChoice, ReadField } from '../reading/types.ts';
import { chooseAlone } from './choose.ts';
import { isAttended, type Flow } from './context.ts';
import { ending, type Decision, type FillPlan } from './decision.ts';
import { hostOf, isHttps } from './hosts.ts';
import { judgeAnswer, lockedOut } from './judge.ts';
import { mayBeAt, mayTypeAt, pageOrigin, refusal } from './permission.ts';
import { planFill } from './plan.ts';
import type { RecipeStep } from './recipe.ts';
import type { Look } from './types.ts';
import { isOffer } from './signs.ts';

/** Looks at a page without anything of use before it counts as such, and the same at a guessed address. */
const leastWaits = 2;
const leastGuessedWaits = 1;
/** An address that was guessed is waited for less long: the page at the known one did not become a form. */
const guessedShare = 1 / 3;

/** Decides by the reading and by what happened before. It changes nothing. */
export function decide(flow: Flow, look: Look): Decision {
  const decision =
    wrongPlace(flow, look) ??
    deadEnd(flow, look) ??
    judgeAnswer(flow, look) ??
    inTheWay(flow, look) ??
    byKind(flow, look);
  return decision.do === 'confirm' && flow.evidence.asksPerson ? askWhether(flow) : decision;
}

/** Nothing proved the login, and a person can see whether it is one. */
function askWhether(flow: Flow): Decision {
  const choice: ReadChoice = {
    id: 'account_is_logged_in',
    ref: '',
    type: 'other',
    label: 'The account is logged in',
    description: 'The service cannot tell. Look at the live view.',
    selectors: [],
  };
  if (flow.person.choiceAmong([choice]))
    return { do: 'confirm', byPerson: true, why: 'A person says that the account is logged in.' };
  return { do: 'ask', fields: [], choices: [choice], why: 'Only a person can tell whether the account is logged in.' };
}

/** A flow types and clicks only on hosts that the connection allows. */
function wrongPlace(flow: Flow, { snapshot, reading }: Look): Decision | undefined {
  if (snapshot.url.startsWith('chrome-error:'))
    return ending('network_error', 'The site did not answer; the browser shows an error page.');
  const asks = reading.fields.length > 0;
  const isWeb = /^https?:/i.test(snapshot.url);
  const origin = pageOrigin(snapshot);
  if (isWeb && !mayBeAt(flow, origin)) return toConfirm(flow, origin) ?? notAllowed(flow, origin);
  if (asks && !mayTypeAt(flow, origin)) return notAllowed(flow, origin);
  const frame = reading.fields.map((field) => foreignFrame(flow, snapshot, field)).find((one) => one !== undefined);
  return frame && notAllowed(flow, frame.origin);
}

const notAllowed = (flow: Flow, origin: string) =>
  ending('domain_not_allowed', refusal(flow, origin === 'null' ? undefined : origin));

/** The person chose an identity provider, which opened this host. Only the person can confirm its owner. */
function toConfirm(flow: Flow, url: string): Decision | undefined {
  const host = isHttps(url) ? hostOf(url) : undefined;
  if (!flow.person.ssoChosen || host === undefined) return undefined;
  const choice: ReadChoice = {
    id: `continue_at_${host}`,
    ref: '',
    type: 'other',
    label: `Continue at ${host}`,
    description: 'The login went there. Continue if this is the host of your identity provider.',
    selectors: [],
  };
  if (flow.person.choiceAmong([choice])) return { do: 'trust', host, why: `A person has confirmed ${host}.` };
  return { do: 'ask', fields: [], choices: [choice], why: `The login went to ${host}, which a person has to confirm.` };
}

/** The frame that a field is in, when nothing may be typed into it. The browser checks it again when it types. */
function foreignFrame(flow: Flow, { frames }: Look['snapshot'], { ref }: ReadField) {
  const frame = frames.find(({ elements }) => elements.some((element) => element.ref === ref));
  return frame && !frame.main && !mayTypeAt(flow, frame.origin) ? frame : undefined;
}

/** Pages without a click that continues the login. */
function deadEnd(flow: Flow, { reading, snapshot }: Look): Decision | undefined {
  const websiteError = reading.error?.text;
  const status = snapshot.httpStatus ?? 200;
  switch (reading.kind) {
    case 'captcha':
      if (isAttended(flow))
        return {
          do: 'external',
          why: 'The page has a captcha, and a person is there to solve it.',
          message: 'The site asks to prove that you are human. Solve its captcha in the live view.',
          fields: [],
          choices: [],
        };
      if (reading.fields.length === 0 && (status === 403 || status === 429 || status === 503))
        return ending('bot_detected', `The site answered ${status} with a check for robots.`, websiteError);
      return ending(
        'captcha_blocked',
        'The site shows a captcha. Start the login from the hosted page to solve it in the live view.',
        websiteError,
      );
    case 'locked':
      return lockedOut(flow, websiteError);
    case 'maintenance':
      return ending('website_error', 'The site does not serve logins at the moment.', websiteError);
    case 'blank':
    case 'unknown':
      if (status >= 500) return ending('website_error', `The site answered ${status}.`, websiteError);
      if (status === 429 || (status === 403 && flow.attempt.submitted.length === 0 && flow.page.addresses.length === 0))
        return ending('bot_detected', `The site answered ${status} instead of a login page.`, websiteError);
      return undefined;
    default:
      return undefined;
  }
}

/** What comes before the fields: banners and overlays, and a tab that shows the form. Once each. */
function inTheWay(flow: Flow, look: Look): Decision | undefined {
  const { next, fields } = look.reading;
  const first = !flow.person.hasAnswered && flow.attempt.submitted.length === 0 && fields.length > 0;
  const step = next.find(
    (one) => (one.why === 'dismiss' || (first && one.why === 'tab')) && !flow.attempt.hasTried(look, one),
  );
  return step && { do: 'click', step, why: `"${step.label}" comes before the form (${step.why}).` };
}

function byKind(flow: Flow, look: Look): Decision {
  const { reading } = look;
  switch (reading.kind) {
    case 'signed_in':
      return { do: 'confirm', why: 'The page shows a signed-in account.' };
    case 'basic':
      return { do: 'basic', why: 'The browser asks for HTTP Basic credentials.' };
    case 'passkey':
      return { do: 'passkey', why: 'The page takes a passkey and nothing else.' };
    case 'enrol_totp':
      return onwards(flow, look) ?? { do: 'enrol', why: 'The site demands to set up codes of an authenticator app.' };
    case 'interstitial':
      return onwards(flow, look) ?? hasNoWayOn(flow, look);
    case 'external':
      return outside(flow, look);
    case 'login':
    case 'code':
    case 'choice':
    case 'change_password':
      return questions(flow, look);
    case 'entry':
      return entry(flow, look);
    case 'blank':
      if (mayCome(flow, look)) return { do: 'wait', why: 'The page is empty so far.' };
      return isPast(flow) ? afterSubmit('The page stays empty.') : { do: 'enter', why: 'The page stays empty.' };
    default:
      return unknown(flow, look);
  }
}

function questions(flow: Flow, look: Look): Decision {
  const { reading } = look;
  // After a password this is an application with services to connect, unless a second page says otherwise.
  if (flow.factors.hasSubmittedPassword && isOffer(reading) && flow.attempt.fills > flow.evidence.fillsAtFailure)
    return afterSubmit('The page offers other ways to log in, and has no form.');
  const wanted = flow.person.choiceAmong(reading.choices);
  if (wanted) return { do: 'choose', choice: wanted, why: 'A person chose it.' };
  const skip = reading.kind === 'change_password' ? onwards(flow, look) : undefined;
  if (skip) return skip;
  const plan = planFill(flow, reading);
  const fills = plan.fills.length > 0 && plan.missing.length === 0;
  const chosen = chooseAlone(flow, look);
  if (chosen && (!fills || chosen.choice.type === 'sso_provider' || plan.fills.every(({ from }) => from !== 'person')))
    return { do: 'choose', choice: chosen.choice, why: chosen.why };
  const overused = fills ? submittedTwice(flow, look, plan) : undefined;
  if (overused) return overused;
  if (fills) return { do: 'fill', plan, why: `Everything the page asks for is there: ${listed(plan)}.` };
  // Only what the page has filled in itself, such as a remembered name: go on with it.
  if (reading.fields.length > 0 && plan.missing.length === 0 && reading.submit)
    return { do: 'fill', plan, why: 'The page has filled its fields in itself.' };
  if (reading.fields.length === 0 && reading.choices.length === 0) return onwards(flow, look) ?? hasNoWayOn(flow, look);
  // Among ways to log in, the reading names the one to a form; without anything to type there the person chooses.
  const way = reading.kind === 'choice' && flow.page.credential ? onwards(flow, look) : undefined;
  if (way) return way;
  if (plan.missing.some(({ key }) => key === 'captcha') && !isAttended(flow))
    return ending('captcha_blocked', 'The site asks to copy the characters of a picture.', reading.error?.text);
  const open = reading.fields.length === 0 ? 'a choice' : plan.missing.map(({ label, key }) => label || key).join(', ');
  return {
    do: 'ask',
    fields: plan.missing,
    choices: reading.choices,
    websiteError: flow.attempt.websiteError,
    why: `The page needs ${open}, which the flow does not have.`,
  };
}

/** The same password is submitted twice at most, for any answer of the site: a third time may lock the account. */
function submittedTwice(flow: Flow, { reading }: Look, { fills }: FillPlan): Decision | undefined {
  const spent = fills.find(
    ({ field, value }) => field.type === 'password' && value !== undefined && flow.factors.isSpent(value),
  );
  if (!spent) return undefined;
  const why = 'The site shows its login form again after the same password was submitted twice.';
  if (spent.from === 'person' && flow.person.hasAnswered)
    return ending('max_attempts_reached', why, reading.error?.text);
  if (spent.from === 'person' || isAttended(flow))
    return { do: 'ask', fields: reading.fields, choices: reading.choices, refused: true, why };
  return ending('credentials_invalid', why, reading.error?.text);
}

function outside(flow: Flow, look: Look): Decision {
  const { reading } = look;
  // After a submit every page may look like an answer to it; read by itself it may be the application.
  if (isPast(flow) && flow.read(look.snapshot, { domain: flow.input.connection.domain }).kind === 'signed_in')
    return afterSubmit('By itself the page shows a signed-in account.');
  const pending = flow.person.choiceAmong(reading.choices);
  if (pending) return { do: 'choose', choice: pending, why: 'A person chose it.' };
  const chosen = chooseAlone(flow, look);
  if (chosen) return { do: 'choose', choice: chosen.choice, why: chosen.why };
  const plan = planFill(flow, reading);
  if (plan.fills.length > 0 && plan.missing.length === 0 && plan.fills.some(({ from }) => from !== 'credential'))
    return { do: 'fill', plan, why: 'What the page takes besides is there.' };
  return {
    do: 'external',
    message: reading.externalMessage ?? 'The site waits for an action outside of the page.',
    fields: reading.fields,
    choices: reading.choices,
    why: 'The page waits for something outside of it.',
  };
}

/** The next click past the page that was not tried. */
function onwards(flow: Flow, look: Look): Decision | undefined {
  const step = look.reading.next.find((one) => !flow.attempt.hasTried(look, one));
  return step && { do: 'click', step, why: `"${step.label}" leads on (${step.why}).` };
}

function hasNoWayOn(flow: Flow, look: Look): Decision {
  if (isAttended(flow))
    return {
      do: 'external',
      message: 'The site shows a page that needs a person. Go on in the live view.',
      fields: [],
      choices: [],
      why: 'Nothing on the page leads on, and a person is there.',
    };
  if (isPast(flow) && look.reading.fields.length === 0) return afterSubmit('Nothing on the page leads on.');
  return ending(
    'stuck_in_loop',
    'The site shows the same page again whatever is clicked on it.',
    look.reading.error?.text,
  );
}

function entry(flow: Flow, look: Look): Decision {
  if (isPast(flow) && flow.attempt.fills > flow.evidence.fillsAtFailure)
    return afterSubmit('The page offers a login, which may or may not be done.');
  const way = onwards(flow, look);
  if (way) return way;
  if (isPast(flow)) return afterSubmit('The page offers a login, and nothing on it leads to a form.');
  return { do: 'enter', why: 'No link of the page led to a login form.' };
}

function unknown(flow: Flow, look: Look): Decision {
  if (isPast(flow)) return afterSubmit('No login form is left.');
  const entered = onwards(flow, look);
  if (entered) return entered;
  // A guessed address that the site does not have gets no form.
  const missing = flow.page.guessed && (look.snapshot.httpStatus ?? 200) >= 400;
  if (!missing && mayCome(flow, look)) return { do: 'wait', why: 'The page has no login form so far.' };
  return { do: 'enter', why: 'The page has no login form.' };
}

/** Scripts may still build the form: the page is empty, loads, asks its server, or changes. */
function mayCome({ deadlines, now, page }: Flow, { reading, snapshot }: Look): boolean {
  if (page.blankWaits < (page.guessed ? leastGuessedWaits : leastWaits)) return true;
  const comes = reading.kind === 'blank' || snapshot.loading || snapshot.requesting === true || page.changing;
  const most = deadlines.coming * (page.guessed ? guessedShare : 1);
  return comes && now() - (page.waitingSince ?? now()) < most;
}

/** Something that logs in was submitted. */
export const isPast = (flow: Flow) =>
  flow.factors.hasSubmittedPassword ||
  flow.factors.basicSent > 0 ||
  flow.draft.requirements.passkey ||
  flow.draft.requirements.external ||
  flow.draft.steps.some(logsIn);

const logsIn = ({ fills, click }: RecipeStep) =>
  fills.some(({ type }) => type !== 'text') ||
  click?.choice?.type === 'sso_provider' ||
  click?.choice?.type === 'account';

const afterSubmit = (why: string): Decision => ({ do: 'confirm', why });

const listed = ({ fills }: FillPlan) => fills.map(({ field, from }) => `${field.key} (${from})`).join(', ');

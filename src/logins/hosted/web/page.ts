/**
 * The page on which a person takes part in a login: it shows the questions of the service's flow, and sends the answers. One
 * state is shown at a time; a state that is already on the screen is not rendered again, which keeps unsent input.
 */
import type { Connection } from '../../schema.ts';
import { browserPanel } from './browser.ts';
import { choiceList } from './choices.ts';
import { $, make } from './elements.ts';
import { fieldList } from './fields.ts';
import { returnAddress } from './return.ts';
import { isFinal, Refused, service } from './service.ts';
import type { News, State, Submit } from './state.ts';
import * as messages from './messages.ts';

const SLOW_MS = 20_000;
/** How long the flow may take to take an answer, before the question that was answered counts as asked again. */
const STALE_MS = 20_000;
const NOTE_MS = 10_000;

const root = document.documentElement;
const query = new URLSearchParams(location.search);
const connectionId = decodeURIComponent(location.pathname.split('/').findLast(Boolean) ?? '');
const login = service(connectionId);
const fields = fieldList();
const choices = choiceList((choice, button) => void send({ selected_choice_id: choice.id }, button));
const browser = browserPanel();

let state: State = {};
/** The state on the screen. */
let shown = '';
/** Set from a submit until the flow moves on: the state that was answered, and when. */
let answered: { question: string; interaction: State['interaction_id']; at: number; moved: boolean } | undefined;
let slowTimer: number | undefined;

const site = () => state.domain ?? 'the site';
/** How the flow ended; undefined while it runs. */
const finalStatus = () => (state.flow_status && state.flow_status !== 'IN_PROGRESS' ? state.flow_status : undefined);
const isOver = () => finalStatus() !== undefined;

// ---- rendering

function view(name: string): void {
  root.dataset.state = name;
}

function announce(text: string): void {
  if ($('status-text').textContent !== text) $('status-text').textContent = text;
  clearTimeout(slowTimer);
  if (text) slowTimer = setTimeout(() => ($('status-text').textContent = messages.progress.slow(site())), SLOW_MS);
}

/** An alert is read out when it is filled, so the same text is filled in again. */
function complain(text: string | null | undefined, quoted = false): void {
  $('problem').replaceChildren();
  if (!text) return;
  if (quoted) $('problem').append(make('strong', {}, messages.says(site())), ' ');
  $('problem').append(make('span', { dir: 'auto' }, text));
}

function introduce({ domain, profile_name: profile, save_credentials: kept }: Connection): void {
  $('title').textContent = `Sign in to ${domain}`;
  $('monogram').textContent = Array.from(domain.replace(/^www\./, ''))[0]?.toUpperCase() ?? '';
  $('who').replaceChildren('for the profile ', make('b', {}, profile));
  $('who').hidden = false;
  $('about').textContent = messages.about({ site: domain, host: location.host, kept, profile });
  $('footer').hidden = false;
}

function busy(on: boolean, button?: HTMLElement): void {
  fields.readOnly(on);
  choices.readOnly(on);
  $('submit').setAttribute('aria-disabled', String(on));
  $('form').setAttribute('aria-busy', String(on));
  for (const each of document.querySelectorAll('[data-pressed]')) each.removeAttribute('data-pressed');
  if (on) button?.setAttribute('data-pressed', '');
}

function showProgress(): void {
  // The form that was just sent stays where it is until there is something new to show.
  if (!answered) hideQuestions();
  complain('');
  view('busy');
  announce(messages.progress[state.flow_step === 'SUBMITTING' ? 'submitting' : 'discovering'](site()));
  document.title = `Sign in to ${site()}`;
}

function hideQuestions(): void {
  for (const id of ['form', 'or', 'elsewhere'] as const) $(id).hidden = true;
  fields.clear();
  choices.clear();
}

function ask({ sent }: { sent: boolean }): void {
  const { external_action_message: elsewhere, website_error: failed } = state;
  const [asked, offered] = [state.fields ?? [], state.choices ?? []];
  const outside = state.flow_step === 'AWAITING_EXTERNAL_ACTION';
  announce('');
  busy(false);
  fields.show(asked, state.discovered_fields, { keep: !sent, failed: Boolean(failed) });
  choices.show(offered, { besides: outside || asked.length > 0 });
  $('form').hidden = asked.length === 0;
  $('or').hidden = asked.length === 0 || offered.length === 0;
  $('elsewhere').hidden = !outside;
  $('elsewhere-text').textContent = elsewhere ?? `Finish the sign-in to ${site()} where it asks you to.`;
  const title = fields.hasCode ? 'Enter the code' : '';
  $('form-title').textContent = title;
  $('form-title').hidden = !title;
  $('form-note').textContent = outside ? '' : (elsewhere ?? '');
  $('form-note').hidden = outside || !elsewhere;
  view(outside ? 'elsewhere' : 'asking');
  complain(failed, true);
  document.title = `${failed ? 'Not accepted' : title || 'Sign in'} – ${site()}`;
  focusOn(outside ? $('elsewhere') : (fields.first() ?? choices.first() ?? $('title')));
}

/** The focus stays in the session's browser while a person works there. */
function focusOn(element: HTMLElement): void {
  if (!browser.hasFocus()) element.focus();
}

interface End {
  good: boolean;
  title: string;
  text?: string | undefined;
  quote?: string | null | undefined;
  next?: string;
  link?: URL | undefined;
}

function showEnd({ good, title, text = '', quote, next = '', link }: End): void {
  announce('');
  complain('');
  hideQuestions();
  busy(false);
  browser.close();
  view('over');
  $('footer').hidden = true;
  $('note').textContent = '';
  $('end-good').toggleAttribute('hidden', !good);
  $('end-bad').toggleAttribute('hidden', good);
  $('end-title').textContent = title;
  $('end-text').textContent = text;
  $('end-quote').textContent = quote ?? '';
  $('end-quote').hidden = !quote;
  $('end-next').textContent = next;
  $('end-next').hidden = !next;
  $('end-link').hidden = !link;
  if (link) {
    $('end-link').href = link.href;
    $('end-link').textContent = `Continue to ${link.host}`;
  }
  $('end').hidden = false;
  document.title = title;
  $('end-title').focus();
}

function finish(status: messages.End): void {
  const { profile_name, domain, error_code, error_message, website_error } = state;
  const end = messages.ends[status];
  const good = status === 'SUCCESS';
  const message = error_message || website_error || end.title(site());
  const link = good
    ? returnAddress(query.get('success_url'), { profile_name, domain })
    : returnAddress(query.get('error_url'), { code: error_code || `flow_${status.toLowerCase()}`, message });
  const outcome: End = {
    good,
    title: end.title(site()),
    text: good ? (link ? '' : end.text) : error_message || end.text,
    quote: good ? undefined : website_error,
    next: good || link ? '' : messages.askAgain,
  };
  login.end(outcome);
  showEnd({ ...outcome, link });
  // Not left in the history: going back would only find the page of a sign-in that is over.
  if (link) location.replace(link.href);
}

// ---- states in, answers out

const questionOf = ({ flow_step, fields: asked, choices: offered, website_error, external_action_message }: State) =>
  JSON.stringify([flow_step, asked, offered, website_error, external_action_message]);

/** An event has the whole of a flow's state, so that what it leaves out is no longer so. */
function onState(news: News): void {
  const known = ['id', 'domain', 'profile_name', 'save_credentials', 'flow_expires_at', 'live_view_url'] as const;
  const lasting: State = Object.fromEntries(known.map((name) => [name, state[name]]));
  state = { ...lasting, ...news };
  const status = finalStatus();
  if (status) return finish(status);
  browser.offer(state.live_view_url);
  tick();
  const question = questionOf(state);
  const waits = state.flow_step === 'AWAITING_INPUT' || state.flow_step === 'AWAITING_EXTERNAL_ACTION';
  if (!waits) {
    if (answered) answered.moved = true;
    shown = '';
    return showProgress();
  }
  const stale =
    answered?.question === question &&
    answered.interaction === state.interaction_id &&
    !answered.moved &&
    Date.now() - answered.at < STALE_MS;
  if (stale || question === shown) return;
  const sent = Boolean(answered);
  answered = undefined;
  shown = question;
  ask({ sent });
}

async function send(body: Submit, button: HTMLElement): Promise<void> {
  if (answered || root.dataset.state === 'over') return;
  complain('');
  busy(true, button);
  announce(messages.progress.sending);
  const interaction = state.interaction_id;
  const mine = { question: shown, interaction, at: Date.now(), moved: false };
  answered = mine;
  try {
    await login.submit(interaction ? { ...body, interaction_id: interaction } : body);
  } catch (error) {
    if (answered === mine) await refused(error);
    return;
  }
  if (answered !== mine) return; // the flow was faster than the answer, and its next question is shown
  fields.forgetSecrets();
  shown = '';
  announce(messages.progress.submitting(site()));
  setTimeout(() => void refresh(), STALE_MS + 100);
}

async function refused(error: unknown): Promise<void> {
  answered = undefined;
  if (isFinal(error)) return close(error);
  announce('');
  busy(false);
  const movedOn = error instanceof Refused && (error.status === 422 || error.status === 409);
  if (movedOn) await refresh();
  if (isOver()) return;
  if (movedOn) complain(messages.trouble.movedOn);
  else complain(error instanceof Refused ? messages.trouble.refused(error.message) : messages.trouble.unreachable);
  (fields.first() ?? choices.first())?.focus();
}

/** Reads the state again, in case an event was missed. */
async function refresh(): Promise<void> {
  if (isOver()) return;
  try {
    onState(await login.state());
  } catch (error) {
    if (isFinal(error)) close(error);
  }
}

function close({ status }: Refused): void {
  if (root.dataset.state === 'over') return;
  login.forget();
  const { used, ended, over } = messages.dead;
  const { title, text } = status === 410 ? used : state.flow_status ? ended : over;
  state = { ...state, flow_status: 'EXPIRED' };
  showEnd({ good: false, title, text, next: messages.askAgain });
}

async function cancel(): Promise<void> {
  if (isOver() || !confirm(messages.cancel)) return;
  try {
    await login.cancel();
  } catch (error) {
    if (!(error instanceof Refused)) return complain(messages.trouble.unreachable);
  }
  await refresh();
}

// ---- time

/** A notice at the foot of the screen, visible at every scroll position. */
const notes = { lost: '', hurry: '' };
function note(name: keyof typeof notes, text: string): void {
  notes[name] = text;
  $('note').textContent = notes.lost || notes.hurry;
}

let hurried = false;
function tick(): void {
  // A question ends before its login does.
  const end = state.input_expires_at ?? state.flow_expires_at;
  if (!end || isOver()) return;
  const seconds = (Date.parse(end) - Date.now()) / 1000;
  $('time').textContent = messages.timeLeft(seconds);
  if (seconds <= 0) return void refresh();
  if (seconds < 120 && !hurried) {
    hurried = true;
    note('hurry', messages.hurry);
    setTimeout(() => note('hurry', ''), NOTE_MS);
  }
}

// ---- the beginning

/** The code is good for one exchange, and leaves the address with it: it must not stay in the history. */
async function enter(): Promise<void> {
  const code = query.get('code');
  if (!code) return;
  try {
    await login.exchange(code);
  } catch (error) {
    // A tab that exchanged it before continues with its token.
    if (!(isFinal(error) && login.hasToken)) throw error;
  }
  const address = new URL(location.href);
  address.searchParams.delete('code');
  history.replaceState(null, '', address);
}

async function begin(): Promise<void> {
  announce(messages.progress.opening);
  await enter();
  if (!login.hasToken) {
    const outcome = login.outcome() as End | null;
    if (outcome) return showEnd(outcome);
    throw new Refused(401, '');
  }
  const connection = await login.state();
  state = connection;
  introduce(connection);
  tick();
  setInterval(tick, 15_000);
  onState(connection);
  await login.follow({ onState, isOver, onLost: (on) => note('lost', on && !isOver() ? messages.trouble.lost : '') });
}

$('form').addEventListener('submit', (event) => {
  event.preventDefault();
  void send({ field_values: fields.values() }, $('submit'));
});

$('cancel').addEventListener('click', () => void cancel());

try {
  await begin();
} catch (error) {
  const refusal = error instanceof Refused && error.status < 500 && error.status !== 429;
  if (refusal) close(error);
  else showEnd({ good: false, ...messages.dead.broken });
}

/** Runs in an isolated world of a document with a captcha widget, and keeps what it heard there between looks. */
import type { CaptchaKind, CaptchaLook, CaptchaOutcome } from '../captcha-look.ts';

/** How long one look takes, if nothing happens. Less than the deadline of a command. */
const LOOK_MS = 5000;
const MOST_OUTCOMES = 20;

const fields: Record<CaptchaKind, string> = {
  hcaptcha: 'textarea[name="h-captcha-response"]',
  recaptcha_v2: 'textarea[name^="g-recaptcha-response"],textarea[id^="g-recaptcha-response"]',
  recaptcha_v3: 'textarea[id^="g-recaptcha-response"]',
  turnstile: 'input[name="cf-turnstile-response"]',
  geetest: 'input[name="geetest_validate"],input[name="captcha_output"]',
};
const frames = 'iframe[src*="hcaptcha.com"],iframe[src*="/recaptcha/"],iframe[src*="geetest.com"]';

type Heard = CaptchaOutcome & { kind: CaptchaKind };

const world = globalThis as { captchaOutcomes?: Heard[] };
const outcomes = world.captchaOutcomes ?? listen();

/**
 * Listens for the messages by which widgets report to the page around them that an attempt has failed. The browser says which site sent a
 * message, so a page cannot forge one. reCAPTCHA uses a channel of its own, which only the page itself can read.
 */
function listen(): Heard[] {
  const heard: Heard[] = [];
  world.captchaOutcomes = heard;
  addEventListener('message', ({ origin, data }) => {
    try {
      const outcome = outcomeOf(new URL(origin).hostname, data);
      if (outcome && heard.length < MOST_OUTCOMES) heard.push(outcome);
    } catch {
      // Any site may send any message.
    }
  });
  return heard;
}

function outcomeOf(host: string, data: unknown): Heard | undefined {
  if (host === 'hcaptcha.com' || host.endsWith('.hcaptcha.com')) {
    const message = (typeof data === 'string' ? JSON.parse(data) : data) as Record<string, unknown>;
    if (message['source'] !== 'hcaptcha' || message['label'] !== 'challenge-closed') return undefined;
    const { event } = message['contents'] as { event: unknown };
    const status =
      event === 'challenge-expired'
        ? 'timeout'
        : event === 'challenge-escaped'
          ? 'abandoned'
          : /-error$|^rate-limited$/.test(String(event))
            ? 'failure'
            : undefined;
    return status && { kind: 'hcaptcha', status, code: codeOf(event) };
  }
  if (host === 'challenges.cloudflare.com') {
    const { source, event, code, reason } = data as Record<string, unknown>;
    if (source !== 'cloudflare-challenge') return undefined;
    if (event === 'fail') return { kind: 'turnstile', status: 'failure', code: codeOf(code ?? 'fail') };
    if (event === 'reject') return { kind: 'turnstile', status: 'failure', code: codeOf(reason ?? 'reject') };
    if (event === 'interactiveTimeout') return { kind: 'turnstile', status: 'timeout', code: codeOf(event) };
  }
  return undefined;
}

const codeOf = (value: unknown) => String(value).slice(0, 1000);

/** Resolves when there is something to report, or after a while. */
export function lookFor(kind: CaptchaKind): Promise<CaptchaLook> {
  let focused = false;
  const look = (): Omit<CaptchaLook, 'focused'> | undefined => {
    if (document.activeElement?.matches(frames)) focused = true;
    const at = outcomes.findIndex((outcome) => outcome.kind === kind);
    const [outcome] = at === -1 ? [] : outcomes.splice(at, 1);
    if (outcome) return { solved: false, version: 'v2', outcome };
    for (const field of document.querySelectorAll<HTMLInputElement>(fields[kind]))
      if (field.value) return { solved: true, version: /-1\d{5}$/.test(field.id) ? 'v3' : 'v2' };
    return undefined;
  };
  return new Promise((resolve) => {
    const started = performance.now();
    const attempt = () => {
      let seen;
      try {
        seen = look();
      } catch {
        // Names in the page may hide properties of its document.
      }
      if (seen) resolve({ ...seen, focused });
      else if (performance.now() - started > LOOK_MS) resolve({ solved: false, version: 'v2', focused });
      else setTimeout(attempt, 100);
    };
    attempt();
  });
}

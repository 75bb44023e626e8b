import { flag, object, oneOf, optional, text } from '../../lib/shape.ts';

export type Kind = 'hcaptcha' | 'recaptcha_v2' | 'recaptcha_v3' | 'turnstile' | 'geetest';

/** How long one look takes, if nothing happens. Less than the deadline of a command. */
const LOOK_MS = 5000;

/** What a look at a page with a widget answers: whether there is an answer, never what the answer is. */
export const isLook = object({
  result: object({
    value: object({
      solved: flag,
      focused: flag,
      version: oneOf('v2', 'v3'),
      outcome: optional(object({ status: oneOf('failure', 'timeout', 'abandoned'), code: text(1000) })),
    }),
  }),
});

const fields: Record<Kind, string> = {
  hcaptcha: 'textarea[name="h-captcha-response"]',
  recaptcha_v2: 'textarea[name^="g-recaptcha-response"],textarea[id^="g-recaptcha-response"]',
  recaptcha_v3: 'textarea[id^="g-recaptcha-response"]',
  turnstile: 'input[name="cf-turnstile-response"]',
  geetest: 'input[name="geetest_validate"],input[name="captcha_output"]',
};
const frames = 'iframe[src*="hcaptcha.com"],iframe[src*="/recaptcha/"],iframe[src*="geetest.com"]';

/**
 * The messages by which widgets tell the page around them that an attempt has failed. The browser says which site sent a message, so a
 * page cannot make one up. reCAPTCHA uses a channel of its own, which only the page itself can read.
 */
const HEAR = `(heard) => addEventListener('message', ({ origin, data }) => {
  const push = (kind, status, code) => {
    if (heard.length < 20) heard.push({ kind, status, code: String(code).slice(0, 1000) });
  };
  try {
    const host = new URL(origin).hostname;
    if (host === 'hcaptcha.com' || host.endsWith('.hcaptcha.com')) {
      const { source, label, contents } = typeof data === 'string' ? JSON.parse(data) : data;
      if (source !== 'hcaptcha' || label !== 'challenge-closed') return;
      const { event } = contents;
      if (event === 'challenge-expired') push('hcaptcha', 'timeout', event);
      else if (event === 'challenge-escaped') push('hcaptcha', 'abandoned', event);
      else if (/-error$|^rate-limited$/.test(event)) push('hcaptcha', 'failure', event);
    } else if (host === 'challenges.cloudflare.com') {
      if (data.source !== 'cloudflare-challenge') return;
      if (data.event === 'fail') push('turnstile', 'failure', data.code ?? 'fail');
      else if (data.event === 'reject') push('turnstile', 'failure', data.reason ?? 'reject');
      else if (data.event === 'interactiveTimeout') push('turnstile', 'timeout', data.event);
    }
  } catch {}
})`;

/** An expression for the isolated world of the frame around a widget. It resolves when there is something to tell, or after a while. */
export function lookFor(kind: Kind): string {
  return `new Promise((resolve) => {
    // Kept between looks, in a world that the page does not see.
    const heard = (globalThis.captchaOutcomes ??= []);
    if (!globalThis.hearsCaptchas) (${HEAR})(heard);
    globalThis.hearsCaptchas = true;
    let focused = false;
    const look = () => {
      try {
        const active = document.activeElement;
        if (active && active.matches(${JSON.stringify(frames)})) focused = true;
        const told = heard.findIndex(({ kind }) => kind === ${JSON.stringify(kind)});
        if (told !== -1) return done({ solved: false, outcome: heard.splice(told, 1)[0] });
        for (const field of document.querySelectorAll(${JSON.stringify(fields[kind])}))
          if (field.value) return done({ solved: true, version: /-1\\d{5}$/.test(field.id) ? 'v3' : 'v2' });
      } catch {}
    };
    const done = (seen) => {
      clearInterval(timer);
      clearTimeout(late);
      resolve({ version: 'v2', focused, ...seen });
    };
    const timer = setInterval(look, 100);
    const late = setTimeout(() => done({ solved: false }), ${LOOK_MS});
    look();
  })`;
}

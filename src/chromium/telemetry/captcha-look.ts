import { flag, object, oneOf, optional, text, type Checked } from '../../lib/shape.ts';

export type CaptchaKind = 'hcaptcha' | 'recaptcha_v2' | 'recaptcha_v3' | 'turnstile' | 'geetest';

const isOutcome = object({ status: oneOf('failure', 'timeout', 'abandoned'), code: text(1000) });
export type CaptchaOutcome = Checked<typeof isOutcome>;

/** What a look at a page with a widget returns (web/captcha.ts): whether there is an answer, never the answer itself. */
export const isCaptchaLook = object({
  solved: flag,
  /** The widget has had the focus. */
  focused: flag,
  version: oneOf('v2', 'v3'),
  outcome: optional(isOutcome),
});
export type CaptchaLook = Checked<typeof isCaptchaLook>;

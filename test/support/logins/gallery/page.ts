/**
 * A page of the gallery: a small site below its own path, with screens and forms, sessions on the server, its error messages, and the
 * expected results.
 */
export interface GalleryPage {
  /** The first part of its path. */
  name: string;
  /** Its special property, in a sentence. */
  about: string;
  lang: string;
  /** The first is where a visitor arrives. */
  screens: Record<string, Screen>;
  /** How a login with the right and with wrong values ends. */
  outcome: Outcome;
}

export interface Screen {
  html(view: View): string;
  status?: number;
  headers?: Record<string, string>;
  /** What a submit leads to. */
  submit?(values: Record<string, string>, visit: Visit): Answer;
  /** The browser asks for the name and the password, by HTTP Basic. */
  basic?: true;
  /** The screens that have to be passed before a submit of this one counts. */
  after?: string[];
  /** What the reading must find: kind, fields, choices and steps, in the notation of `brief`. */
  reads: string;
  /** The values that were submitted before it. */
  submitted?: ('identifier' | 'password' | 'code' | 'choice')[];
}

/** What a screen is made of besides its own text. */
export interface View {
  lang: string;
  /** The path of the page, without a slash at its end. */
  base: string;
  /** Where the form of this screen goes to. */
  action: string;
  csrf: string;
  /** Why the last submit was refused. */
  error?: string;
}

/** What the server knows of a visitor. */
export interface Visit {
  csrf: string;
  passed: Set<string>;
  failures: number;
  in: boolean;
  error?: string;
}

export type Answer = { to: string } | { refused: string } | { in: true };

export interface Outcome {
  /** With the values of `person`: logged in, or why not. */
  right: 'success' | 'external' | 'captcha' | 'locked' | 'maintenance' | 'passkey' | 'unsupported';
  /** The kind of error that a wrong password or code gets; absent where nothing can be typed. */
  wrong?: 'credentials' | 'code' | 'locked';
  /** Values beside identifier and password. */
  needs?: ('totp' | 'code' | 'server' | 'tenant' | 'pin')[];
}

/** Who has an account at every page of the gallery. */
export const person = {
  username: 'ada',
  email: 'ada@shop.example',
  phone: '+49 170 0000042',
  password: 'correct horse 7',
  pin: '4711',
  /** The code that the site sends by mail or SMS. */
  code: '482913',
  totpSecret: 'JBSWY3DPEHPK3PXP',
  server: 'main',
  tenant: 'acme',
};

export const isPerson = (name: string | undefined): boolean =>
  [person.username, person.email, person.phone].includes((name ?? '').trim().toLowerCase());
export const knows = (secret: string | undefined): boolean => secret === person.password;

export function document({ lang }: View, title: string, body: string, head = ''): string {
  return `<!doctype html><html lang="${lang}"><head><meta charset="utf-8"><title>${title}</title><meta name="viewport" content="width=device-width"><style>
    body { font: 15px sans-serif; margin: 0; padding: 24px } .card { max-width: 380px; margin: 20px auto } input, select, button { font: inherit }
    .card input:not([type=checkbox]):not([type=radio]), .card select { display: block; width: 320px; padding: 8px; margin: 4px 0 12px }
    .btn { display: inline-block; padding: 8px 16px; border: 1px solid #888; cursor: pointer }
    </style>${head}</head><body>${body}</body></html>`;
}

export function form({ action, csrf }: View, inner: string, attributes = ''): string {
  return `<form method="post" action="${action}" ${attributes}><input type="hidden" name="csrf" value="${csrf}">${inner}</form>`;
}

/** The text of a refusal, in the page's manner. */
export function refusal({ error }: View, before: string, after = '</div>'): string {
  return error === undefined ? '' : `${before}${error}${after}`;
}

/** A screen with one form that checks a name and a password. */
export const nameAndPassword =
  (name: string, secret: string, refused: string, next: Answer = { in: true }): NonNullable<Screen['submit']> =>
  (values) =>
    isPerson(values[name]) && knows(values[secret]) ? next : { refused };

import { $, make } from './elements.ts';
import type { Field, OlderField } from './state.ts';
import { unnamed } from './messages.ts';

type Control = HTMLInputElement | HTMLSelectElement;

const secret = new Set<Field['type']>(['password', 'code', 'totp_code', 'totp_secret']);
const isCode = (type: Field['type']) => type === 'code' || type === 'totp_code';

/**
 * The fields that the site asks for. `older` is the same field in the interface's older form, which knows more about the input:
 * its name is the id.
 */
export function fieldList() {
  /** Each field that is shown, with its control. */
  let shown: { field: Field; input: Control; hintId: string | undefined }[] = [];

  function control({ type, options, required = true }: Field, id: string, older: OlderField | undefined): Control {
    if (options && options.length > 0) {
      const items = options.map(({ label, value }) => make('option', { value, textContent: label }));
      return make('select', { id, required }, ...items);
    }
    const input = make('input', { id, required, dir: 'auto', spellcheck: false, autocapitalize: 'none' });
    input.setAttribute('autocorrect', 'off');
    input.type = type === 'password' ? 'password' : 'text';
    input.autocomplete = autocompleteOf(type);
    input.placeholder = older?.placeholder ?? '';
    // A code may have letters: digits only where the site says so.
    if (type === 'totp_code' || older?.type === 'number' || older?.type === 'totp') input.inputMode = 'numeric';
    else if (older?.type === 'email' || older?.type === 'tel' || older?.type === 'url') input.inputMode = older.type;
    if (isCode(type)) input.classList.add('code');
    return input;
  }

  function row(field: Field, older: OlderField | undefined, index: number): HTMLElement {
    const id = `field-${index}`;
    const input = control(field, id, older);
    const text = field.label || unnamed[field.type] || unnamed.text;
    const label = make('label', { htmlFor: id, dir: 'auto' }, text);
    if (field.required === false) label.append(make('span', { className: 'optional' }, ' (optional)'));
    const box = make('div', { className: 'box' }, input);
    if (input instanceof HTMLInputElement && input.type === 'password') box.append(reveal(input, text));
    const line = make('div', { className: 'field' }, label, box);
    const hint = older?.hint;
    if (hint) line.append(make('p', { className: 'hint', id: `${id}-hint`, dir: 'auto' }, hint));
    shown.push({ field, input, hintId: hint ? `${id}-hint` : undefined });
    return line;
  }

  return {
    /** `keep`: values typed and not sent. `failed`: the site refused the sent values. */
    show(
      fields: readonly Field[],
      discovered: readonly OlderField[] | null | undefined,
      { keep, failed }: { keep: boolean; failed: boolean },
    ): void {
      const before = new Map(shown.map(({ field, input }) => [field.id, { type: field.type, value: input.value }]));
      shown = [];
      $('fields').replaceChildren(
        ...fields.map((field, index) => {
          const older = discovered?.find(({ name }) => name === field.id || name === field.ref);
          return row(field, older, index);
        }),
      );
      for (const { field, input, hintId } of shown) {
        const typed = before.get(field.id);
        if (typed && typed.type === field.type && (keep || !secret.has(field.type))) input.value = typed.value;
        const refused = failed && (secret.has(field.type) || shown.length === 1);
        if (refused) input.setAttribute('aria-invalid', 'true');
        const described = [hintId, refused ? 'problem' : undefined].filter(Boolean).join(' ');
        if (described) input.setAttribute('aria-describedby', described);
        input.addEventListener('input', () => input.removeAttribute('aria-invalid'));
      }
    },

    /** Values by the id of their field. Phones add spaces after names, and codes are shown in groups. */
    values: (): Record<string, string> =>
      Object.fromEntries(
        shown
          .filter(({ field, input }) => field.required !== false || input.value !== '')
          .map(({ field, input }) => [field.id, tidy(field.type, input.value)]),
      ),

    /** Once it was sent, the page has no password any more. */
    forgetSecrets(): void {
      for (const { field, input } of shown) if (secret.has(field.type)) input.value = '';
      for (const button of $('fields').querySelectorAll<HTMLElement>('[data-shown]')) button.click();
    },

    readOnly(on: boolean): void {
      for (const { input } of shown)
        if (input instanceof HTMLSelectElement) input.inert = on;
        else input.readOnly = on;
    },

    /** The first empty one, else the first one. */
    first: () => (shown.find(({ input }) => input.value === '') ?? shown[0])?.input,
    clear(): void {
      shown = [];
      $('fields').replaceChildren();
    },
    get hasCode(): boolean {
      return shown.some(({ field }) => isCode(field.type));
    },
  };
}

function reveal(input: HTMLInputElement, label: string): HTMLElement {
  const text = make('span', {}, 'Show');
  const button = make('button', { type: 'button', className: 'reveal' }, text);
  const toggle = () => {
    const show = input.type === 'password';
    input.type = show ? 'text' : 'password';
    text.textContent = show ? 'Hide' : 'Show';
    button.toggleAttribute('data-shown', show);
    button.setAttribute('aria-label', `${text.textContent} ${label}`);
  };
  button.setAttribute('aria-label', `Show ${label}`);
  button.addEventListener('click', toggle);
  return button;
}

function autocompleteOf(type: Field['type']): AutoFill {
  if (type === 'identifier') return 'username';
  if (type === 'password') return 'current-password';
  return isCode(type) ? 'one-time-code' : 'off';
}

function tidy(type: Field['type'], value: string): string {
  if (isCode(type)) return value.replace(/\s+/g, '');
  return type === 'identifier' || type === 'totp_secret' ? value.trim() : value;
}

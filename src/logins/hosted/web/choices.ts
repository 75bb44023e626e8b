import { $, make } from './elements.ts';
import type { Choice } from './state.ts';
import { choose, orChoose } from './messages.ts';

/** The ways on that the site offers, by type, in the site's order. */
export function choiceList(onChoose: (choice: Choice, button: HTMLElement) => void) {
  return {
    /** `besides`: there is something else on the page that the person can do, and these come after it. */
    show(choices: readonly Choice[], { besides }: { besides: boolean }): void {
      const types = [...new Set(choices.map(({ type }) => type))];
      const headings = besides ? orChoose : choose;
      $('choices').replaceChildren(
        ...types.map((type, index) => {
          const title = make('h2', { id: `choices-${index}` }, headings[type] ?? headings.other);
          if (besides && type === 'sso_provider') title.className = 'unseen'; // “or” is enough for the eye
          const items = choices
            .filter((choice) => choice.type === type)
            .map((choice) => make('li', {}, button(choice)));
          const list = make('ul', {}, ...items);
          const group = make('div', { className: 'choices' }, title, list);
          group.setAttribute('role', 'group');
          group.setAttribute('aria-labelledby', title.id);
          return group;
        }),
      );
      $('choices').hidden = choices.length === 0;
    },
    clear(): void {
      $('choices').replaceChildren();
      $('choices').hidden = true;
    },
    readOnly(on: boolean): void {
      for (const each of $('choices').querySelectorAll('button')) each.setAttribute('aria-disabled', String(on));
    },
    first: () => $('choices').querySelector('button') ?? undefined,
  };

  function button(choice: Choice): HTMLElement {
    const text = make('span', { className: 'choice-label', dir: 'auto' }, choice.label);
    const made = make('button', { type: 'button', className: 'choice' }, text);
    if (choice.description) made.append(make('span', { className: 'choice-more', dir: 'auto' }, choice.description));
    made.addEventListener('click', () => onChoose(choice, made));
    return made;
  }
}

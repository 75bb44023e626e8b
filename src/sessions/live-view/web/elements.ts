import { finder } from '../../../lib/web/elements.ts';

/** Elements of page.html that are not plain HTMLElements. */
const classes = {
  address: HTMLInputElement,
  back: HTMLButtonElement,
  'chooser-files': HTMLInputElement,
  'clipboard-text': HTMLTextAreaElement,
  'dialog-text': HTMLInputElement,
  forward: HTMLButtonElement,
  keyboard: HTMLTextAreaElement,
  'picture-quality': HTMLSelectElement,
  'picture-size': HTMLSelectElement,
  screen: HTMLCanvasElement,
};

/** The other elements of page.html. */
type Plain =
  | 'badge'
  | 'chooser'
  | 'chooser-cancel'
  | 'chooser-choose'
  | 'clipboard'
  | 'clipboard-button'
  | 'clipboard-copy'
  | 'clipboard-paste'
  | 'dialog'
  | 'dialog-accept'
  | 'dialog-cancel'
  | 'dialog-message'
  | 'dialog-title'
  | 'display'
  | 'files'
  | 'files-button'
  | 'files-help'
  | 'files-list'
  | 'follow'
  | 'fullscreen-button'
  | 'keyboard-button'
  | 'navigation'
  | 'new-tab'
  | 'notice'
  | 'page-title'
  | 'pane'
  | 'picture'
  | 'picture-button'
  | 'popup'
  | 'reload'
  | 'stage'
  | 'state-detail'
  | 'state-text'
  | 'tabs'
  | 'title';

export const $ = finder<typeof classes, Plain>(classes);

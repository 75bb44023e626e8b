/** The panel for the size of the picture and its quality, which a slow network or a small screen asks for. */
import { panel } from './panel.js';

/** `onSize` gets 'fit' or 'actual', `onQuality` one of the page's options. Returns the quality that is chosen. */
export function picturePanel({ $, listen, focus, onSize, onQuality }) {
  const [size, quality] = [$('picture-size'), $('picture-quality')];
  const { button } = panel({ $, name: 'picture', listen, opened: (yes) => (yes ? size.focus() : focus()) });
  button.hidden = false;
  listen(size, 'change', () => onSize(size.value));
  listen(quality, 'change', () => onQuality(quality.value));
  if (size.value !== 'fit') onSize(size.value); // chosen before the connection was lost
  return { quality: () => quality.value };
}

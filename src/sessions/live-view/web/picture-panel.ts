/** The panel for the size of the picture and its quality, which a slow network or a small screen asks for. */
import type { ViewerMessageOf } from '../../../chromium/pages/viewer-protocol.ts';
import { $ } from './elements.ts';
import { panel } from './panel.ts';
import type { Parts } from './parts.ts';

export type Size = 'fit' | 'actual';
export type Quality = ViewerMessageOf<'quality'>['level'];

/** Returns the quality that is chosen. */
export function picturePanel({
  listen,
  focus,
  onSize,
  onQuality,
}: Pick<Parts, 'listen' | 'focus'> & { onSize(size: Size): void; onQuality(quality: Quality): void }) {
  const [size, quality] = [$('picture-size'), $('picture-quality')];
  // The values of the options in page.html.
  const chosenSize = () => size.value as Size;
  const chosenQuality = () => quality.value as Quality;
  const { button } = panel({ name: 'picture', listen, opened: (yes) => (yes ? size.focus() : focus()) });
  button.hidden = false;
  listen(size, 'change', () => onSize(chosenSize()));
  listen(quality, 'change', () => onQuality(chosenQuality()));
  if (size.value !== 'fit') onSize(chosenSize()); // chosen before the connection was lost
  return { quality: chosenQuality };
}

import { checkVisibility, rectOf, scrollIntoView } from './dom.ts';
import { deepAt } from './tree.ts';

const contentOf = (frame: Element) => {
  const rect = rectOf(frame);
  return { x: rect.left + frame.clientLeft, y: rect.top + frame.clientTop };
};

export function framePlace(frame: Element) {
  const { x, y } = contentOf(frame);
  const { width, height, right, bottom } = rectOf(frame);
  return {
    x: x + scrollX,
    y: y + scrollY,
    width,
    height,
    shown:
      width > 2 &&
      height > 2 &&
      right + scrollX > 0 &&
      bottom + scrollY > 0 &&
      checkVisibility(frame, { opacityProperty: true, visibilityProperty: true }),
  };
}

export function frameShift(frame: Element, x: number, y: number) {
  const isOut = (content: { x: number; y: number }) => {
    const [left, top] = [content.x + x, content.y + y];
    return left < 0 || top < 0 || left >= innerWidth || top >= innerHeight;
  };
  if (isOut(contentOf(frame))) {
    scrollIntoView(frame, { block: 'center', inline: 'center', behavior: 'instant' });
    const content = contentOf(frame);
    if (isOut(content))
      scrollBy({
        left: content.x + x - innerWidth / 2,
        top: content.y + y - innerHeight / 2,
        behavior: 'instant',
      });
  }
  const content = contentOf(frame);
  return { ...content, hit: deepAt(content.x + x, content.y + y) === frame };
}

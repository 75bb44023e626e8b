import { integer, object, oneOf, optional, text, type Checked } from '../../lib/shape.ts';

const coordinate = integer(-1e9, 1e9);

/** What the script in a document reports (web/interaction.ts). Any document of the world can send one, so the service checks it. */
export const isInteractionReport = object({
  type: oneOf('click', 'key', 'scroll'),
  selector: text(2000),
  tag: optional(text(256)),
  text: optional(text(1000)),
  key: optional(text(64)),
  x: optional(coordinate),
  y: optional(coordinate),
  from_x: optional(coordinate),
  from_y: optional(coordinate),
  to_x: optional(coordinate),
  to_y: optional(coordinate),
});
export type InteractionReport = Checked<typeof isInteractionReport>;

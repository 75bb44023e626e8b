/** A page as the reading needs it: what the browser's side makes. Values of fields are never in it. */
export type { Box, El, FrameSnapshot, Snapshot, TextBlock } from '../../sessions/forms.ts';

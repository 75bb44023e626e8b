/** The most pixels of a display: pictures of it are in the service's memory, four bytes a pixel. */
export const MOST_PIXELS = 4096 * 4096;

export interface Viewport {
  readonly width: number;
  readonly height: number;
  readonly refreshRate?: number | undefined;
}

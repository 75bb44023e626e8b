/** The most that a viewer of the live view sends at once. Its page says so before it sends anything. */
export const MOST_FILES = 20;
export const MOST_UPLOADED = 100 * 1024 * 1024;

/** The limits of an upload from the live view. Its page checks them before it sends anything. */
export const MOST_FILES = 20;
export const MOST_UPLOADED = 100 * 1024 * 1024;

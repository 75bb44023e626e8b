/**
 * Every place where a client may put its key. A route or websocket that takes a key elsewhere does not compile until the place is listed
 * here: the logger redacts these names, and a node does not forward these headers to another.
 */
export const keyHeaders = ['authorization', 'steel-api-key'] as const;
export type KeyHeader = (typeof keyHeaders)[number];

export const keyParameters = ['key', 'token', 'apiKey'] as const;
export type KeyParameter = (typeof keyParameters)[number];

export const watchAsks = {};

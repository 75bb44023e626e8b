export const playwrightAsks = {};

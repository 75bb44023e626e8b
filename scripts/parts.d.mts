export function isRoot(): boolean;
export function isDebian(): boolean;

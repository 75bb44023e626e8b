export function isRoot(): boolean;
export function isDebian(): boolean;
export function findParts(): { name: string; path?: string }[];
export function command(...names: string[]): string | undefined;

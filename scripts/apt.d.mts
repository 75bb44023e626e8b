export function aptInstall(names: string[]): Promise<string[]>;

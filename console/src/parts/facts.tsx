import type { ReactNode } from 'react';

/** A list of names and values. */
export const Facts = ({ children }: { children: ReactNode }) => <dl className="facts">{children}</dl>;

export function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/**
 * Finds elements of a page by their ids. `classes` has the elements that are not plain HTMLElements; `Plain` are the ids of the others. An
 * element that the page does not have is a fault of the page, and an error.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- each page gives its own ids
export function finder<Classes extends Record<string, new () => Element>, Plain extends string>(classes: Classes) {
  type ElementOf<Id> = Id extends keyof Classes ? InstanceType<Classes[Id]> : HTMLElement;
  return <Id extends (keyof Classes & string) | Plain>(id: Id): ElementOf<Id> => {
    const element = document.getElementById(id);
    if (!(element instanceof (classes[id] ?? HTMLElement))) throw new Error(`The page has no element ${id}.`);
    return element as ElementOf<Id>;
  };
}

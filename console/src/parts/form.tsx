import { Button, Group, Modal, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useState, type ChangeEvent, type FormEvent, type ReactNode } from 'react';
import { Refusal } from './parts.tsx';

/** A button that opens a dialog. The content of the dialog is made each time it opens, so a form begins empty. */
export function Dialog(props: {
  label: string;
  title?: string;
  /** For a button in a row of a list. */
  variant?: 'light' | 'subtle';
  size?: 'md' | 'lg';
  children: (close: () => void) => ReactNode;
}) {
  const { label, title = label, variant, size = 'md' } = props;
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      <Button onClick={open} size={variant ? 'xs' : 'sm'} variant={variant ?? 'filled'}>
        {label}
      </Button>
      <Modal opened={opened} onClose={close} title={title} size={size}>
        {props.children(close)}
      </Modal>
    </>
  );
}

/** Fields, the refusal of the last try, and the button that sends them. */
export function Form(props: {
  /** What the button says. */
  label: string;
  act: { isPending: boolean; error: Error | null };
  send: () => void;
  children: ReactNode;
}) {
  const submit = (event: FormEvent) => {
    event.preventDefault();
    props.send();
  };
  return (
    <form onSubmit={submit}>
      <Stack>
        {props.children}
        <Refusal error={props.act.error} />
        <Group justify="flex-end">
          <Button type="submit" loading={props.act.isPending}>
            {props.label}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** What is typed into a field: `input` is for the field, `text` for what is sent. */
export function useText(first = '') {
  const [value, setValue] = useState(first);
  const onChange = (event: ChangeEvent<HTMLInputElement | HTMLTextAreaElement>) => setValue(event.currentTarget.value);
  return { text: value.trim(), input: { value, onChange } };
}

/** The same for a switch. */
export function useOn(first: boolean) {
  const [checked, setChecked] = useState(first);
  const onChange = (event: ChangeEvent<HTMLInputElement>) => setChecked(event.currentTarget.checked);
  return { on: checked, input: { checked, onChange } };
}

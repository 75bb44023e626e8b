import { Button, Group, Modal, Stack } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { useState, type ChangeEvent, type FormEvent, type ReactNode } from 'react';
import { Refusal } from './parts.tsx';

/** A button that opens a dialog. The content is created each time it opens, so a form is empty at first. */
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

/** Fields, the error of the last attempt, and the button that sends them. */
export function Form(props: {
  /** The text of the button. */
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

/** The value of a text field: `input` has the properties of the field, `text` the value to send. */
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
